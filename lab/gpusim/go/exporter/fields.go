package exporter

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	mib = 1 << 20

	// The simulated NVML's own field numbers begin here; lab/gpusim/nvml/fields.c has the same.
	simField = 0x51AA0000

	// What a fully loaded GPU sends over NVLink, in bytes per second and direction.
	fullLinkRate = 450e9
)

// A reader gets one DCGM field of a GPU out of NVML, formatted as DCGM formats it: whole numbers
// for integer fields, six decimals for the others. It answers false where the GPU has no value,
// and then no sample is printed, as the real exporter drops DCGM's blanks.
type reader func(lib nvml.Interface, device nvml.Device) (string, bool)

// By field id, so that the names of DCGM before and after 4.6 both work.
var readers = map[dcgm.Short]reader{
	1:  func(lib nvml.Interface, _ nvml.Device) (string, bool) { return text(lib.SystemGetDriverVersion()) },
	2:  func(lib nvml.Interface, _ nvml.Device) (string, bool) { return text(lib.SystemGetNVMLVersion()) },
	50: ofDevice(func(d nvml.Device) (string, bool) { return text(d.GetName()) }),
	53: ofDevice(func(d nvml.Device) (string, bool) { return text(d.GetSerial()) }),
	54: ofDevice(func(d nvml.Device) (string, bool) { return text(d.GetUUID()) }),
	85: ofDevice(func(d nvml.Device) (string, bool) { return text(d.GetVbiosVersion()) }),

	100: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetClockInfo(nvml.CLOCK_SM)) }),
	101: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetClockInfo(nvml.CLOCK_MEM)) }),
	112: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetCurrentClocksEventReasons()) }),
	113: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetMaxClockInfo(nvml.CLOCK_SM)) }),
	114: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetMaxClockInfo(nvml.CLOCK_MEM)) }),
	140: field(nvml.FI_DEV_MEMORY_TEMP),
	150: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetTemperature(nvml.TEMPERATURE_GPU)) }),
	151: threshold(nvml.TEMPERATURE_THRESHOLD_MEM_MAX),
	152: threshold(nvml.TEMPERATURE_THRESHOLD_GPU_MAX),
	153: ofDevice(func(d nvml.Device) (string, bool) {
		margin, result := d.GetMarginTemperature()
		return whole(int(margin.MarginTemperature), result)
	}),
	155: ofDevice(func(d nvml.Device) (string, bool) { return watts(d.GetPowerUsage()) }),
	156: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetTotalEnergyConsumption()) }),
	158: threshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
	159: threshold(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
	160: ofDevice(func(d nvml.Device) (string, bool) { return watts(d.GetPowerManagementLimit()) }),
	164: ofDevice(func(d nvml.Device) (string, bool) { return watts(d.GetEnforcedPowerLimit()) }),
	170: ofDevice(fabricStatus),
	191: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetFanSpeed()) }),
	202: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetPcieReplayCounter()) }),
	203: ofDevice(func(d nvml.Device) (string, bool) { u, r := d.GetUtilizationRates(); return whole(u.Gpu, r) }),
	204: ofDevice(func(d nvml.Device) (string, bool) { u, r := d.GetUtilizationRates(); return whole(u.Memory, r) }),
	206: ofDevice(func(d nvml.Device) (string, bool) { u, _, r := d.GetEncoderUtilization(); return whole(u, r) }),
	207: ofDevice(func(d nvml.Device) (string, bool) { u, _, r := d.GetDecoderUtilization(); return whole(u, r) }),
	235: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetMaxPcieLinkGeneration()) }),
	236: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetMaxPcieLinkWidth()) }),
	237: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetCurrPcieLinkGeneration()) }),
	238: ofDevice(func(d nvml.Device) (string, bool) { return whole(d.GetCurrPcieLinkWidth()) }),
	240: violation(nvml.PERF_POLICY_POWER),
	241: violation(nvml.PERF_POLICY_THERMAL),
	242: violation(nvml.PERF_POLICY_SYNC_BOOST),
	243: violation(nvml.PERF_POLICY_BOARD_LIMIT),
	244: violation(nvml.PERF_POLICY_LOW_UTILIZATION),
	245: violation(nvml.PERF_POLICY_RELIABILITY),
	250: ofDevice(func(d nvml.Device) (string, bool) { m, r := d.GetMemoryInfo_v2(); return whole(m.Total/mib, r) }),
	251: ofDevice(func(d nvml.Device) (string, bool) { m, r := d.GetMemoryInfo_v2(); return whole(m.Free/mib, r) }),
	252: ofDevice(func(d nvml.Device) (string, bool) { m, r := d.GetMemoryInfo_v2(); return whole(m.Used/mib, r) }),
	253: ofDevice(func(d nvml.Device) (string, bool) { m, r := d.GetMemoryInfo_v2(); return whole(m.Reserved/mib, r) }),
	254: ofDevice(memoryUsedShare),
	310: ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC),
	311: ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC),
	312: ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC),
	313: ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC),
	346: field(simField + 16),
	389: ofDevice(func(d nvml.Device) (string, bool) { b, r := d.GetRowRemapperHistogram(); return whole(b.None, r) }),
	390: absent, // retired pages: since Ampere rows are remapped
	391: absent,
	392: absent,
	393: ofDevice(func(d nvml.Device) (string, bool) { _, v, _, _, r := d.GetRemappedRows(); return whole(v, r) }),
	394: ofDevice(func(d nvml.Device) (string, bool) { v, _, _, _, r := d.GetRemappedRows(); return whole(v, r) }),
	395: ofDevice(func(d nvml.Device) (string, bool) { _, _, _, v, r := d.GetRemappedRows(); return zeroOrOne(v, r) }),
	396: ofDevice(func(d nvml.Device) (string, bool) { _, _, v, _, r := d.GetRemappedRows(); return zeroOrOne(v, r) }),
	409: field(nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
	419: field(nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL),
	429: field(nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
	439: field(nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL),
	449: linkRate(2.0 / 1e6), // both directions, in MB/s
	526: constant("0"),       // no vGPU licence

	// Profiling fields follow the load: a kernel that keeps most of the GPU busy.
	1001: share(simField + 0),
	1002: share(simField + 1),
	1003: share(simField + 2),
	1004: share(simField + 3),
	1005: share(simField + 4),
	1006: share(simField + 5),
	1007: share(simField + 6),
	1008: share(simField + 7),
	1009: pcieBytes(nvml.PCIE_UTIL_TX_BYTES),
	1010: pcieBytes(nvml.PCIE_UTIL_RX_BYTES),
	1011: linkRate(1),
	1012: linkRate(1),

	// Counters that begin with NVLink 5; a Hopper has NVLink 4.
	1201: absent, 1203: absent, 1205: absent, 1206: absent, 1209: absent, 1211: absent,
	1212: absent, 1213: absent, 1214: absent, 1216: absent, 1218: absent, 1219: absent,

	1420: field(nvml.FI_DEV_PERF_POLICY_POWER),
	1421: field(nvml.FI_DEV_PERF_POLICY_SYNC_BOOST),
	1422: field(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
	1423: field(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN),
	1424: field(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN),
	1501: constant("0"), // PCIe errors that the link corrected
	1507: field(simField + 17),
	1523: field(nvml.FI_DEV_GET_GPU_RECOVERY_ACTION),
}

func ofDevice(read func(nvml.Device) (string, bool)) reader {
	return func(_ nvml.Interface, device nvml.Device) (string, bool) { return read(device) }
}

func constant(value string) reader {
	return func(nvml.Interface, nvml.Device) (string, bool) { return value, true }
}

func text(value string, result nvml.Return) (string, bool) {
	return value, result == nvml.SUCCESS
}

func whole[T int | uint32 | uint64](value T, result nvml.Return) (string, bool) {
	return fmt.Sprintf("%d", value), result == nvml.SUCCESS
}

func zeroOrOne(value bool, result nvml.Return) (string, bool) {
	if value {
		return "1", result == nvml.SUCCESS
	}
	return "0", result == nvml.SUCCESS
}

func ratio(value float64) string {
	return fmt.Sprintf("%f", value)
}

func watts(milliwatt uint32, result nvml.Return) (string, bool) {
	return ratio(float64(milliwatt) / 1000), result == nvml.SUCCESS
}

func threshold(which nvml.TemperatureThresholds) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		return whole(d.GetTemperatureThreshold(which))
	})
}

// A field that this GPU does not have.
func absent(nvml.Interface, nvml.Device) (string, bool) { return "", false }

// 0 none, 1 not started, 2 in progress, 3 success, 4 failure. NVML has no state for the last: it
// tells an error beside "completed".
func fabricStatus(device nvml.Device) (string, bool) {
	info, result := device.GetGpuFabricInfo()
	status := int(info.State)
	if status == nvml.GPU_FABRIC_STATE_COMPLETED && nvml.Return(info.Status) != nvml.SUCCESS {
		status++
	}
	return whole(status, result)
}

func memoryUsedShare(device nvml.Device) (string, bool) {
	memory, result := device.GetMemoryInfo_v2()
	if result != nvml.SUCCESS || memory.Total <= memory.Reserved {
		return "", false
	}
	return ratio(float64(memory.Used) / float64(memory.Total-memory.Reserved)), true
}

func violation(policy nvml.PerfPolicyType) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		status, result := d.GetViolationStatus(policy)
		return whole(status.ViolationTime, result)
	})
}

func ecc(kind nvml.MemoryErrorType, since nvml.EccCounterType) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		return whole(d.GetTotalEccErrors(kind, since))
	})
}

func field(id uint32) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		value, ok := fieldValue(d, id)
		return strconv.FormatUint(value, 10), ok
	})
}

func fieldValue(device nvml.Device, id uint32) (uint64, bool) {
	values := []nvml.FieldValue{{FieldId: id}}
	result := device.GetFieldValues(values)
	if result != nvml.SUCCESS || nvml.Return(values[0].NvmlReturn) != nvml.SUCCESS {
		return 0, false
	}
	return binary.LittleEndian.Uint64(values[0].Value[:]), true
}

// The simulated NVML counts shares in 1/10000.
func share(id uint32) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		value, ok := fieldValue(d, id)
		return ratio(float64(value) / 10000), ok
	})
}

// NVLink traffic follows the load, where links are up.
func linkRate(scale float64) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		state, result := d.GetNvLinkState(0)
		share, ok := fieldValue(d, simField+8)
		if result != nvml.SUCCESS || !ok || state != nvml.FEATURE_ENABLED {
			return "", false
		}
		return whole(uint64(float64(share)/10000*fullLinkRate*scale), nvml.SUCCESS)
	})
}

// NVML answers in KiB/s, DCGM in bytes per second.
func pcieBytes(direction nvml.PcieUtilCounter) reader {
	return ofDevice(func(d nvml.Device) (string, bool) {
		rate, result := d.GetPcieThroughput(direction)
		return whole(uint64(rate)*1024, result)
	})
}
