package exporter

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Reasons for which clocks are held down, by bit, under the exporter's names.
var clockEvents = []struct {
	bit  uint64
	name string
}{
	{0x001, "gpu_idle"}, {0x002, "clocks_setting"}, {0x004, "power_cap"}, {0x008, "hw_slowdown"},
	{0x010, "sync_boost"}, {0x020, "sw_thermal"}, {0x040, "hw_thermal"}, {0x080, "hw_power_brake"},
	{0x100, "display_clocks"},
}

type occurrence struct {
	what string
	at   time.Time
}

// Events counts, for each GPU by UUID, what happened since the exporter started.
type Events struct {
	mutex   sync.Mutex
	lastXID map[string]int
	xids    map[string]map[int]bool            // every XID of a GPU, for DCGM's health watches
	clocks  map[string]uint64                  // clock event reasons of the sample before
	seen    map[string]map[string][]occurrence // metric family, UUID
	totals  map[string]map[string]map[string]int
}

// NewEvents returns counters that are all empty.
func NewEvents() *Events {
	events := &Events{lastXID: map[string]int{}, xids: map[string]map[int]bool{}}
	events.Recreate()
	return events
}

// Recreate empties what the exporter counts, as loading its counters file again does. What DCGM
// remembers stays: the last XID, and the health watches' history.
func (e *Events) Recreate() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.clocks = map[string]uint64{}
	e.seen = map[string]map[string][]occurrence{xidCount: {}, clockCount: {}}
	e.totals = map[string]map[string]map[string]int{xidTotal: {}, clockTotal: {}}
}

// AddXID records one XID error of a GPU.
func (e *Events) AddXID(uuid string, xid int, at time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.lastXID[uuid] = xid
	if e.xids[uuid] == nil {
		e.xids[uuid] = map[int]bool{}
	}
	e.xids[uuid][xid] = true
	e.seen[xidCount][uuid] = append(e.seen[xidCount][uuid], occurrence{itoa(xid), at})
	e.count(xidTotal, uuid, itoa(xid))
}

// AddClocks records one sample of a GPU's clock event reasons. _COUNT counts samples; _TOTAL counts
// how often a reason began, and not the ones that the first sample finds.
func (e *Events) AddClocks(uuid string, reasons uint64, at time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	before, known := e.clocks[uuid]
	e.clocks[uuid] = reasons
	for _, event := range clockEvents {
		if reasons&event.bit == 0 {
			continue
		}
		e.seen[clockCount][uuid] = append(e.seen[clockCount][uuid], occurrence{event.name, at})
		if known && before&event.bit == 0 {
			e.count(clockTotal, uuid, event.name)
		}
	}
}

func (e *Events) count(family, uuid, what string) {
	if e.totals[family][uuid] == nil {
		e.totals[family][uuid] = map[string]int{}
	}
	e.totals[family][uuid][what]++
}

// XIDs are all of a GPU's XIDs since the exporter started.
func (e *Events) XIDs(uuid string) map[int]bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return maps.Clone(e.xids[uuid])
}

// LastXID is the GPU's last XID since the exporter started, 0 for none.
func (e *Events) LastXID(uuid string) int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.lastXID[uuid]
}

// Total counts a GPU's events of a _TOTAL family by kind, since the counters file was loaded.
func (e *Events) Total(family, uuid string) map[string]int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return maps.Clone(e.totals[family][uuid])
}

// Within counts a GPU's events of a _COUNT family by kind since a time, and forgets older ones.
func (e *Events) Within(family, uuid string, since time.Time) map[string]int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	counts := map[string]int{}
	var kept []occurrence
	for _, event := range e.seen[family][uuid] {
		if event.at.Before(since) {
			continue
		}
		kept = append(kept, event)
		counts[event.what]++
	}
	e.seen[family][uuid] = kept
	return counts
}

// WatchXIDs records XIDs of the GPUs that can be reached now, until the process ends. Their UUIDs
// are asked for first: a GPU that an XID took off the bus no longer tells.
func (e *Events) WatchXIDs(lib nvml.Interface) {
	set, result := lib.EventSetCreate()
	if result != nvml.SUCCESS {
		slog.Warn("XID errors are not watched", "reason", result.Error())
		return
	}
	uuids := map[nvml.Device]string{}
	total, _ := lib.DeviceGetCount()
	for index := 0; index < total; index++ {
		device, result := lib.DeviceGetHandleByIndex(index)
		if result != nvml.SUCCESS {
			continue
		}
		uuids[device], _ = device.GetUUID()
		if result := device.RegisterEvents(nvml.EventTypeXidCriticalError, set); result != nvml.SUCCESS {
			slog.Warn("XID errors are not watched", "gpu", index, "reason", result.Error())
		}
	}
	for {
		event, result := set.Wait(1000)
		switch result {
		case nvml.SUCCESS:
			slog.Info("XID error", "UUID", uuids[event.Device], "xid", event.EventData)
			e.AddXID(uuids[event.Device], int(event.EventData), time.Now())
		case nvml.ERROR_TIMEOUT:
		default:
			time.Sleep(time.Second)
		}
	}
}
