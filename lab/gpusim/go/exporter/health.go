package exporter

import (
	"slices"

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

// The watches that the exporter prints, in its order.
var healthWatches = []string{
	"PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL",
}

// XIDs for which DCGM 4.4.1 and later fails a GPU as a whole, until the engine restarts.
var devastatingXIDs = []int{48, 74, 79, 94, 95, 119, 120, 140}

const thermalReasons = 0x20 | 0x40

func readHealth(device nvml.Device, clocks uint64) Health {
	health := Health{}
	_, _, pending, failed, result := device.GetRemappedRows()
	if result == nvml.SUCCESS && pending {
		health["MEM"] = Verdict{warn, "DCGM_FR_PENDING_ROW_REMAP"}
	}
	if result == nvml.SUCCESS && failed {
		health["MEM"] = Verdict{fail, "DCGM_FR_ROW_REMAP_FAILURE"}
	}
	errors, result := device.GetTotalEccErrors(
		nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	if result == nvml.SUCCESS && errors > 0 {
		health["MEM"] = Verdict{fail, "DCGM_FR_VOLATILE_DBE_DETECTED"}
	}
	if clocks&thermalReasons != 0 {
		health["THERMAL"] = Verdict{warn, "DCGM_FR_CLOCKS_EVENT_THERMAL"}
	}
	return health
}

// verdict is the state of one watch; xids are the GPU's XIDs since the exporter started.
func (h Health) verdict(watch string, xids map[string]int) Verdict {
	if watch == "ALL" {
		for _, xid := range devastatingXIDs {
			if xids[itoa(xid)] > 0 {
				return Verdict{fail, "DCGM_FR_XID_ERROR"}
			}
		}
	}
	if found, ok := h[watch]; ok && slices.Contains(healthWatches, watch) {
		return found
	}
	return Verdict{pass, "DCGM_FR_OK"}
}
