package exporter

import (
	"maps"
	"slices"
	"strings"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Instance is a GPU instance, as MIG makes them; the real exporter then has series of each, and none
// of the GPU that is divided.
type Instance struct {
	ID      int
	Profile string
	Devices []string // UUIDs of its MIG devices, which pods hold
}

// Fields that a divided GPU and its instances have no values of, as recorded of A100 and H100:
// utilization, remapped rows and NVLink.
var notUnderMIG = []dcgm.Short{
	203, 204, 206, 207, 393, 394, 395, 396, 409, 419, 429, 439, 449, 1011, 1012,
}

// Fields that an instance has of its own: its memory.
var ofInstance = []dcgm.Short{250, 251, 252, 253, 254}

// divided is what a sample has of a GPU: itself, or its instances where MIG divides it.
func divided(lib nvml.Interface, device nvml.Device, gpu GPU, counters Counters) []GPU {
	if mode, _, result := device.GetMigMode(); result != nvml.SUCCESS ||
		mode != nvml.DEVICE_MIG_ENABLE {
		return []GPU{gpu}
	}
	gpu.Peers, gpu.Values = nil, maps.Clone(gpu.Values)
	for _, counter := range counters.Metrics {
		if slices.Contains(notUnderMIG, counter.ID) || slices.Contains(ofInstance, counter.ID) {
			delete(gpu.Values, counter.Name)
		}
	}
	var found []GPU
	most, _ := device.GetMaxMigDeviceCount()
	for index := 0; index < most; index++ {
		mig, result := device.GetMigDeviceHandleByIndex(index)
		if result != nvml.SUCCESS {
			continue
		}
		id, uuid, profile, ok := readMIG(mig)
		if !ok {
			continue
		}
		same := func(one GPU) bool { return one.Instance.ID == id }
		if at := slices.IndexFunc(found, same); at >= 0 {
			found[at].Instance.Devices = append(found[at].Instance.Devices, uuid)
			continue
		}
		one := gpu
		one.Instance = &Instance{ID: id, Profile: profile, Devices: []string{uuid}}
		one.Values = maps.Clone(gpu.Values)
		for _, counter := range counters.Metrics {
			if !slices.Contains(ofInstance, counter.ID) {
				continue
			}
			if value, ok := read(lib, mig, counter); ok {
				one.Values[counter.Name] = value
			}
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b GPU) int { return a.Instance.ID - b.Instance.ID })
	return found
}

// readMIG tells the GPU instance of a MIG device, its own UUID, and the instance's profile, which
// ends its name: "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb".
func readMIG(mig nvml.Device) (id int, uuid, profile string, ok bool) {
	id, first := mig.GetGpuInstanceId()
	uuid, second := mig.GetUUID()
	name, third := mig.GetName()
	_, profile, named := strings.Cut(name, " MIG ")
	if compute, whole, part := strings.Cut(profile, "c."); part && len(compute) == 1 {
		profile = whole
	}
	return id, uuid, profile, named && first == nvml.SUCCESS && second == nvml.SUCCESS &&
		third == nvml.SUCCESS
}

// holders are the pods that hold a GPU, or the MIG devices of an instance.
func (g GPU) holders(pods Holders) []Pod {
	if g.Instance == nil {
		return pods[g.UUID]
	}
	var found []Pod
	for _, uuid := range g.Instance.Devices {
		found = append(found, pods[uuid]...)
	}
	return found
}
