package exporter

import (
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// A MIG device of a GPU instance, with 1 GiB of memory in use.
func migDevice(uuid, profile string, instance int) nvml.Device {
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc: func() (string, nvml.Return) {
			return "NVIDIA H100 80GB HBM3 MIG " + profile, nvml.SUCCESS
		},
		GetGpuInstanceIdFunc: func() (int, nvml.Return) { return instance, nvml.SUCCESS },
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Used: 1 << 30}, nvml.SUCCESS
		},
	}
}

func TestADividedGPUIsItsInstances(t *testing.T) {
	parts := []nvml.Device{
		migDevice("MIG-a", "3g.40gb", 2), migDevice("MIG-b", "1c.2g.20gb", 5), migDevice("MIG-c", "1c.2g.20gb", 5),
	}
	whole := device("GPU-1").(*mock.Device)
	whole.GetMigModeFunc = func() (int, int, nvml.Return) { return 1, 1, nvml.SUCCESS }
	whole.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	whole.GetMigDeviceHandleByIndexFunc = func(index int) (nvml.Device, nvml.Return) {
		if index >= len(parts) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return parts[index], nvml.SUCCESS
	}
	whole.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 50}, nvml.SUCCESS
	}
	whole.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Used: 4 << 30}, nvml.SUCCESS
	}
	library := library("GPU-1").(*mock.Interface)
	library.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) {
		return whole, nvml.SUCCESS
	}
	counters := counters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, heat", "DCGM_FI_DEV_GPU_UTIL, gauge, load",
		"DCGM_FI_DEV_FB_USED, gauge, memory")
	gpus := Sample(library, counters, nil, &Trends{})
	said := render(counters, gpus, NewEvents(), View{
		Pods: Holders{"MIG-c": {{Namespace: "ml", Name: "train", Container: "main"}}},
	})
	for _, wanted := range []string{
		`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",`, `GPU_I_PROFILE="3g.40gb",GPU_I_ID="2"} 70`,
		`GPU_I_PROFILE="2g.20gb",GPU_I_ID="5",container="main",namespace="ml",pod="train"} 70`,
		`GPU_I_PROFILE="3g.40gb",GPU_I_ID="2"} 1024`,
	} {
		if !strings.Contains(said, wanted) {
			t.Errorf("no %s in\n%s", wanted, said)
		}
	}
	if strings.Contains(said, "GPU_UTIL") || strings.Count(said, "\nDCGM_FI_DEV_GPU_TEMP{") != 2 {
		t.Errorf("not of two instances:\n%s", said)
	}
}
