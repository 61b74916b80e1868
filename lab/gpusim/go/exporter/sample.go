package exporter

import (
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// GPU is what one sample knows of one GPU. Values and Labels are by field name.
type GPU struct {
	Index  int
	UUID   string
	BusID  string
	Model  string
	Labels map[string]string
	Values map[string]string
	Clocks uint64 // clock event reasons, a bit mask
	Health Health
	Peers  map[int]int // NVLink P2P states of the other GPUs, by index
	Lost   bool        // known from before; has no values of its own any more

	Instance *Instance // of a GPU that MIG divides; nil: the whole GPU
}

// Sample reads every GPU that can be reached; one that is lost is missing. `selected` says which
// indices to read (nil: all); `trends` remembers counters from sample to sample.
func Sample(lib nvml.Interface, counters Counters, selected map[int]bool, trends *Trends) []GPU {
	total, result := lib.DeviceGetCount()
	if result != nvml.SUCCESS {
		return nil
	}
	var gpus []GPU
	for index := 0; index < total; index++ {
		if selected != nil && !selected[index] {
			continue
		}
		device, result := lib.DeviceGetHandleByIndex(index)
		if result != nvml.SUCCESS {
			continue
		}
		if gpu, ok := sampleGPU(lib, device, index, counters, trends); ok {
			gpus = append(gpus, divided(lib, device, gpu, counters)...)
		}
	}
	return gpus
}

// WithLost adds to a sample the GPUs of an earlier one that are missing. As from the real exporter,
// what it counted for such a GPU can still be read; what the GPU itself said cannot.
func WithLost(now, before []GPU) []GPU {
	merged := slices.Clone(now)
	for _, gpu := range before {
		if slices.ContainsFunc(now, func(other GPU) bool { return other.UUID == gpu.UUID }) {
			continue
		}
		gpu.Lost, gpu.Values, gpu.Clocks = true, nil, 0
		merged = append(merged, gpu)
	}
	slices.SortStableFunc(merged, func(a, b GPU) int { return a.Index - b.Index })
	return merged
}

func sampleGPU(
	lib nvml.Interface, device nvml.Device, index int, counters Counters, trends *Trends,
) (GPU, bool) {
	gpu := GPU{Index: index, Labels: map[string]string{}, Values: map[string]string{}}
	var results [3]nvml.Return
	gpu.UUID, results[0] = device.GetUUID()
	gpu.Model, results[1] = device.GetName()
	pci, result := device.GetPciInfo()
	results[2] = result
	for _, result := range results {
		if result != nvml.SUCCESS {
			return GPU{}, false
		}
	}
	gpu.BusID = cString(pci.BusId[:])
	gpu.Clocks, _ = device.GetCurrentClocksEventReasons()
	gpu.Health = readHealth(device, gpu.UUID, trends, time.Now())
	gpu.Peers = readPeers(lib, device, index)
	for _, counter := range counters.Labels {
		if value, ok := read(lib, device, counter); ok {
			gpu.Labels[counter.Name] = value
		}
	}
	for _, counter := range counters.Metrics {
		if value, ok := read(lib, device, counter); ok {
			gpu.Values[counter.Name] = value
		}
	}
	return gpu, true
}

func readPeers(lib nvml.Interface, device nvml.Device, index int) map[int]int {
	peers := map[int]int{}
	total, _ := lib.DeviceGetCount()
	for other := 0; other < total; other++ {
		peer, result := lib.DeviceGetHandleByIndex(other)
		if other == index || result != nvml.SUCCESS {
			continue
		}
		status, result := device.GetP2PStatus(peer, nvml.P2P_CAPS_INDEX_NVLINK)
		if result == nvml.SUCCESS {
			peers[other] = int(status)
		}
	}
	return peers
}

func read(lib nvml.Interface, device nvml.Device, counter Counter) (string, bool) {
	if reader, known := readers[counter.ID]; known {
		return reader(lib, device)
	}
	return "0", isEventCounter(counter)
}

func cString[T int8 | uint8](chars []T) string {
	var text strings.Builder
	for _, char := range chars {
		if char == 0 {
			break
		}
		text.WriteByte(byte(char))
	}
	return text.String()
}
