package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// A library with one GPU at 70 degrees, hot enough to be held down, for each UUID.
func library(uuids ...string) nvml.Interface {
	return &mock.Interface{
		DeviceGetCountFunc: func() (int, nvml.Return) { return len(uuids), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(index int) (nvml.Device, nvml.Return) {
			if uuids[index] == "" {
				return nil, nvml.ERROR_GPU_IS_LOST
			}
			return device(uuids[index]), nvml.SUCCESS
		},
		SystemGetDriverVersionFunc: func() (string, nvml.Return) { return "595.91.07", nvml.SUCCESS },
	}
}

func device(uuid string) nvml.Device {
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc: func() (string, nvml.Return) { return `NVIDIA "H100" 80GB`, nvml.SUCCESS },
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) {
			var pci nvml.PciInfo
			for i, char := range "00000000:10:00.0" {
				pci.BusId[i] = int8(char)
			}
			return pci, nvml.SUCCESS
		},
		GetTemperatureFunc: func(nvml.TemperatureSensors) (uint32, nvml.Return) {
			return 70, nvml.SUCCESS
		},
		GetPowerUsageFunc: func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetCurrentClocksEventReasonsFunc: func() (uint64, nvml.Return) {
			return 0x48, nvml.SUCCESS
		},
		GetRemappedRowsFunc: func() (int, int, bool, bool, nvml.Return) {
			return 0, 0, true, false, nvml.SUCCESS
		},
		GetTotalEccErrorsFunc: func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
			return 0, nvml.SUCCESS
		},
	}
}

func counters(t *testing.T, lines ...string) Counters {
	t.Helper()
	parsed, err := ParseCounters(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func render(counters Counters, gpus []GPU, events *Events, view View) string {
	var out strings.Builder
	Render(&out, counters, gpus, events, view)
	return out.String()
}

func TestRenderPrintsJustWhatTheFileLists(t *testing.T) {
	list := counters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, How hot", "DCGM_FI_DEV_POWER_USAGE, gauge, W",
		"DCGM_FI_DRIVER_VERSION, label, version")
	view := View{Hostname: "gpu1", Pods: map[string]Pod{"GPU-a": {"ml", "train-0", "main"}}}
	got := render(list, Sample(library("GPU-a"), list, nil), NewEvents(), view)
	want := "# HELP DCGM_FI_DEV_GPU_TEMP How hot (simulated)\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n" +
		`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",pci_bus_id="00000000:10:00.0",` +
		`device="nvidia0",modelName="NVIDIA \"H100\" 80GB",hostname="gpu1",` +
		`DCGM_FI_DRIVER_VERSION="595.91.07",container="main",namespace="ml",pod="train-0"} 70` +
		"\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestOptionsChangeLabels(t *testing.T) {
	list := counters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, t")
	view := View{OldNames: true, ReplaceBlanks: true, Pods: map[string]Pod{"GPU-a": {"ml", "p", "c"}}}
	got := render(list, Sample(library("GPU-a"), list, nil), NewEvents(), view)
	for _, part := range []string{`,uuid="GPU-a"`, `modelName="NVIDIA-\"H100\"-80GB"`, `pod_name="p"`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
	if strings.Contains(got, "ostname=") {
		t.Errorf("a host name in %s", got)
	}
}

func TestALostGPUHasNoValuesButItsXIDs(t *testing.T) {
	list := counters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, t", "DCGM_FI_DEV_XID_ERRORS, gauge, last",
		"DCGM_EXP_XID_ERRORS_TOTAL, counter, all", "DCGM_EXP_GPU_HEALTH_STATUS, gauge, health")
	before := Sample(library("GPU-a", "GPU-b"), list, nil)
	gpus := WithLost(Sample(library("GPU-a", ""), list, nil), before)
	events := NewEvents()
	events.AddXID("GPU-b", 79, time.Now())
	got := render(list, gpus, events, View{})
	if strings.Count(got, "DCGM_FI_DEV_GPU_TEMP{") != 1 {
		t.Errorf("the temperature of a lost GPU in %s", got)
	}
	for _, part := range []string{
		`err_code="79",err_msg="GPU has fallen off the bus"} 79`,
		`DCGM_EXP_XID_ERRORS_TOTAL{gpu="1",UUID="GPU-b"`,
		`health_error_code="DCGM_FR_XID_ERROR",health_watch="ALL"} 20`,
		`health_error_code="DCGM_FR_PENDING_ROW_REMAP",health_watch="MEM"} 10`,
		`health_error_code="DCGM_FR_CLOCKS_EVENT_THERMAL",health_watch="THERMAL"} 10`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
}

func TestWindowedCountsForgetAndHaveAZeroRow(t *testing.T) {
	list := counters(t, "DCGM_EXP_XID_ERRORS_COUNT, gauge, c", "DCGM_EXP_CLOCK_EVENTS_TOTAL, counter, c")
	gpus := Sample(library("GPU-a"), list, nil)
	events, now := NewEvents(), time.Now()
	events.AddXID("GPU-a", 31, now.Add(-time.Hour))
	events.AddClocks("GPU-a", 0x48, now)
	events.AddClocks("GPU-a", 0x40, now)
	got := render(list, gpus, events, View{XIDWindow: time.Minute, Now: now})
	for _, part := range []string{
		`window_size_in_ms="60000"} 0`, `clock_event="hw_thermal"} 2`, `clock_event="hw_slowdown"} 1`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
}

func TestHoldersKnowsGPUsByResource(t *testing.T) {
	devices := func(resource string, ids ...string) *podresources.ContainerDevices {
		return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids}
	}
	pods := []*podresources.PodResources{{
		Name: "train-0", Namespace: "ml",
		Containers: []*podresources.ContainerResources{{
			Name: "main",
			Devices: []*podresources.ContainerDevices{
				devices("nvidia.com/gpu", "GPU-a", "GPU-b::3"), devices("example.com/nic", "nic0"),
				devices("nvidia.com/a100", "GPU-c"),
			},
		}},
	}}
	found := holders(pods, []string{"nvidia.com/a100"})
	if len(found) != 3 || found["GPU-b"] != (Pod{"ml", "train-0", "main"}) {
		t.Errorf("holders %v", found)
	}
}

func TestOptions(t *testing.T) {
	env := map[string]string{"DCGM_EXPORTER_INTERVAL": "1000", "DCGM_EXPORTER_KUBERNETES": "true",
		"DCGM_EXPORTER_COLLECTORS": "/from/env.csv"}
	getenv := func(name string) string { return env[name] }
	values, err := ParseOptions([]string{"-f", "/from/flag.csv", "--devices=g:0,2-3", "-n"}, getenv)
	if err != nil {
		t.Fatal(err)
	}
	if values["collectors"] != "/from/flag.csv" || !values.On("kubernetes") || !values.On("no-hostname") {
		t.Errorf("values %v", values)
	}
	if interval, err := values.Milliseconds("collect-interval"); err != nil || interval != time.Second {
		t.Errorf("interval %v, %v", interval, err)
	}
	selected, err := values.Selected()
	if err != nil || len(selected) != 3 || selected[1] {
		t.Errorf("selected %v, %v", selected, err)
	}
	for _, arguments := range [][]string{
		{"--no-such-option"}, {"--kubernetes=perhaps"}, {"--web-config-file=/tls.yaml"},
	} {
		if _, err := ParseOptions(arguments, getenv); err == nil {
			t.Errorf("%v accepted", arguments)
		}
	}
}
