package exporter

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// DCGM's health verdicts.
const (
	pass = 0
	warn = 10
	fail = 20
)

// Verdict is what one of DCGM's health watches says, and its error code.
type Verdict struct {
	Status int
	Code   string
}

// Health is the state of the watches that found something, by the watch's name.
type Health map[string]Verdict

// The watches that the exporter prints, in its order. The simulated NVML's fields from
// simField+32 on set their verdicts, in the same order.
var healthWatches = []string{
	"PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL",
}

const simHealthField = simField + 32

type xidVerdict struct {
	watch string
	Verdict
}

// What DCGM 4.6 concludes from an XID, and keeps to until its engine restarts. The watch ALL has
// the ones that concern the GPU as a whole.
var xidVerdicts = map[int]xidVerdict{
	31: {"MEM", xidWarning}, 32: {"MEM", xidWarning}, 43: {"MEM", xidWarning},
	63: {"MEM", Verdict{warn, "DCGM_FR_PENDING_PAGE_RETIREMENTS"}},
	64: {"MEM", Verdict{fail, "DCGM_FR_ROW_REMAP_FAILURE"}},
	38: {"PCIE", xidWarning}, 39: {"PCIE", xidWarning}, 42: {"PCIE", xidWarning},
	60: {"THERMAL", Verdict{warn, "DCGM_FR_CLOCK_THROTTLE_THERMAL"}},
	61: {"THERMAL", xidWarning}, 62: {"THERMAL", xidWarning},
	54: {"POWER", xidWarning}, 56: {"POWER", xidWarning}, 58: {"POWER", xidWarning},
	57: {"POWER", Verdict{warn, "DCGM_FR_CLOCK_THROTTLE_POWER"}}, 78: {"POWER", xidWarning},
	67: {"NVLINK", xidWarning}, 73: {"NVLINK", xidWarning}, 121: {"NVLINK", xidWarning},
	137: {"NVLINK", xidWarning},
	48:  {"ALL", xidFailure}, 74: {"ALL", xidFailure}, 119: {"ALL", xidFailure},
	120: {"ALL", xidFailure}, 140: {"ALL", xidFailure},
	79: {"ALL", Verdict{fail, "DCGM_FR_FALLEN_OFF_BUS"}},
	94: {"ALL", Verdict{warn, "DCGM_FR_CONTAINED_ERROR"}},
	95: {"ALL", Verdict{fail, "DCGM_FR_UNCONTAINED_ERROR"}},
}

var (
	xidWarning = Verdict{warn, "DCGM_FR_XID_ERROR"}
	xidFailure = Verdict{fail, "DCGM_FR_XID_ERROR"}
)

// worse keeps the more severe verdict of a watch.
func (h Health) worse(watch string, verdict Verdict) {
	if verdict.Status > h[watch].Status {
		h[watch] = verdict
	}
}

// readHealth judges a GPU as DCGM 4.6 does: by its state, and by what its counters gained in the
// last minute. A verdict that was set as a fault replaces the watch's own.
func readHealth(device nvml.Device, uuid string, trends *Trends, now time.Time) Health {
	health := Health{}
	readMemoryHealth(device, health)
	readLinkHealth(device, health, func(name string, value uint64) uint64 {
		return trends.Gain(uuid, name, value, now)
	})
	for name, violation := range map[string]struct {
		policy  nvml.PerfPolicyType
		verdict Verdict
	}{
		"THERMAL": {nvml.PERF_POLICY_THERMAL, Verdict{warn, "DCGM_FR_CLOCK_THROTTLE_THERMAL"}},
		"POWER":   {nvml.PERF_POLICY_POWER, Verdict{warn, "DCGM_FR_CLOCK_THROTTLE_POWER"}},
	} {
		status, result := device.GetViolationStatus(violation.policy)
		if result == nvml.SUCCESS && trends.Gain(uuid, name, status.ViolationTime, now) > 0 {
			health.worse(name, violation.verdict)
		}
	}
	if action, ok := fieldValue(device, nvml.FI_DEV_GET_GPU_RECOVERY_ACTION); ok {
		health.worse("DRIVER", recoveryVerdicts[action])
	}
	for i, watch := range healthWatches {
		if status, set := fieldValue(device, uint32(simHealthField+i)); set {
			health[watch] = Verdict{int(status), codeOfFault(watch)}
		}
	}
	return health
}

// codeOfFault is an error code with which DCGM 4.6 fails or warns of a watch.
func codeOfFault(watch string) string {
	code, known := map[string]string{
		"PCIE":    "DCGM_FR_PCI_REPLAY_RATE",
		"NVLINK":  "DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD",
		"MEM":     "DCGM_FR_FAULTY_MEMORY",
		"INFOROM": "DCGM_FR_CORRUPT_INFOROM",
		"THERMAL": "DCGM_FR_CLOCK_THROTTLE_THERMAL",
		"POWER":   "DCGM_FR_CLOCK_THROTTLE_POWER",
		"DRIVER":  "DCGM_FR_GPU_RECOVERY_RESET",
		"ALL":     "DCGM_FR_UNCONTAINED_ERROR",
	}[watch]
	if !known { // DCGM watches nothing there
		return "DCGM_FR_UNKNOWN"
	}
	return code
}

var recoveryVerdicts = map[uint64]Verdict{
	1: {fail, "DCGM_FR_GPU_RECOVERY_RESET"},
	2: {fail, "DCGM_FR_GPU_RECOVERY_REBOOT"},
	3: {warn, "DCGM_FR_GPU_RECOVERY_DRAIN_P2P"},
	4: {fail, "DCGM_FR_GPU_RECOVERY_DRAIN_RESET"},
}

func readMemoryHealth(device nvml.Device, health Health) {
	_, uncorrectable, _, failed, result := device.GetRemappedRows()
	if result == nvml.SUCCESS && uncorrectable >= 512 {
		health.worse("MEM", Verdict{warn, "DCGM_FR_UNCORRECTABLE_ROW_REMAP"})
	}
	errors, other := device.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	if other == nvml.SUCCESS && errors > 0 {
		health.worse("MEM", Verdict{fail, "DCGM_FR_VOLATILE_DBE_DETECTED"})
	}
	if result == nvml.SUCCESS && failed {
		health.worse("MEM", Verdict{fail, "DCGM_FR_ROW_REMAP_FAILURE"})
	}
	if flag, ok := fieldValue(device, simField+17); ok && flag > 0 {
		health.worse("MEM", Verdict{fail, "DCGM_FR_FAULTY_MEMORY"})
	}
}

// One error per minute and Gbit/s of each lane's 10^-12 bit error rate, by PCIe generation.
var replaysPerLane = []float64{0.15, 0.3, 0.48, 0.96, 1.92, 3.84}

// `gain` tells what a counter gained in the last minute.
func readLinkHealth(device nvml.Device, health Health, gain func(string, uint64) uint64) {
	replays, _ := device.GetPcieReplayCounter()
	generation, _ := device.GetCurrPcieLinkGeneration()
	width, result := device.GetCurrPcieLinkWidth()
	gained := gain("pcie", uint64(replays))
	if result == nvml.SUCCESS && generation > 0 {
		generation = min(generation, len(replaysPerLane))
		if float64(gained) > math.Ceil(replaysPerLane[generation-1]*float64(width)) {
			health.worse("PCIE", Verdict{warn, "DCGM_FR_PCI_REPLAY_RATE"})
		}
	}
	for _, counter := range []struct {
		id       uint32
		critical uint64 // errors in a minute
		code     string
	}{
		{nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, 1, "DCGM_FR_NVLINK_ERROR_CRITICAL"},
		{nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, 1, "DCGM_FR_NVLINK_ERROR_CRITICAL"},
		{nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, 6000, "DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD"},
		{nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, 6000, "DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD"},
	} {
		value, ok := fieldValue(device, counter.id)
		if !ok {
			continue
		}
		switch gained := gain(itoa(int(counter.id)), value); {
		case gained >= counter.critical:
			health.worse("NVLINK", Verdict{fail, counter.code})
		case gained > 0:
			health.worse("NVLINK", Verdict{warn, "DCGM_FR_NVLINK_ERROR_THRESHOLD"})
		}
	}
	if status, ok := fabricStatus(device); ok {
		health.worse("NVLINK", fabricVerdicts[status])
	}
}

var fabricVerdicts = map[string]Verdict{
	"1": {fail, "DCGM_FR_FABRIC_PROBE_STATE"},
	"2": {warn, "DCGM_FR_FABRIC_PROBE_STATE"},
	"4": {fail, "DCGM_FR_FABRIC_PROBE_STATE"},
}

// verdict is the state of one watch; xids are the GPU's XIDs since the exporter started.
func (h Health) verdict(watch string, xids map[int]bool) Verdict {
	found, known := h[watch]
	if !known {
		found = Verdict{pass, "DCGM_FR_OK"}
	}
	for xid := range xids {
		if latched := xidVerdicts[xid]; latched.watch == watch && latched.Status > found.Status {
			found = latched.Verdict
		}
	}
	return found
}
