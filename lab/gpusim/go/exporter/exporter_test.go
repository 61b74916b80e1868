package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
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
			return 0, 0, false, true, nvml.SUCCESS
		},
		GetFieldValuesFunc: func([]nvml.FieldValue) nvml.Return { return nvml.ERROR_NOT_SUPPORTED },
		GetViolationStatusFunc: func(nvml.PerfPolicyType) (nvml.ViolationTime, nvml.Return) {
			return nvml.ViolationTime{}, nvml.SUCCESS
		},
		GetPcieReplayCounterFunc:      func() (int, nvml.Return) { return 0, nvml.SUCCESS },
		GetCurrPcieLinkGenerationFunc: func() (int, nvml.Return) { return 5, nvml.SUCCESS },
		GetCurrPcieLinkWidthFunc:      func() (int, nvml.Return) { return 16, nvml.SUCCESS },
		GetGpuFabricInfoFunc: func() (nvml.GpuFabricInfo, nvml.Return) {
			return nvml.GpuFabricInfo{}, nvml.SUCCESS
		},
		GetP2PStatusFunc: func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
			return nvml.P2P_STATUS_OK, nvml.SUCCESS
		},
		GetMigModeFunc: func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED },
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
	view := View{Hostname: "gpu1", Pods: Holders{"GPU-a": {{Namespace: "ml", Name: "train-0", Container: "main"}}}}
	got := render(list, Sample(library("GPU-a"), list, nil, &Trends{}), NewEvents(), view)
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
	view := View{OldNames: true, ReplaceBlanks: true,
		Pods: Holders{"GPU-a": {{Namespace: "ml", Name: "p", Container: "c"}}}}
	got := render(list, Sample(library("GPU-a"), list, nil, &Trends{}), NewEvents(), view)
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
	before := Sample(library("GPU-a", "GPU-b"), list, nil, &Trends{})
	gpus := WithLost(Sample(library("GPU-a", ""), list, nil, &Trends{}), before)
	events := NewEvents()
	events.AddXID("GPU-b", 79, time.Now())
	got := render(list, gpus, events, View{})
	if strings.Count(got, "DCGM_FI_DEV_GPU_TEMP{") != 1 {
		t.Errorf("the temperature of a lost GPU in %s", got)
	}
	for _, part := range []string{
		`err_code="79",err_msg="GPU has fallen off the bus"} 79`,
		`DCGM_EXP_XID_ERRORS_TOTAL{gpu="1",UUID="GPU-b"`,
		`health_error_code="DCGM_FR_FALLEN_OFF_BUS",health_watch="ALL"} 20`,
		`health_error_code="DCGM_FR_ROW_REMAP_FAILURE",health_watch="MEM"} 20`,
		`health_error_code="DCGM_FR_OK",health_watch="THERMAL"} 0`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in\n%s", part, text)
		}
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
		{"--no-such-option"}, {"--kubernetes=perhaps"}, {"--kubernetes-enable-dra"},
		{"-r", "dcgm:5555"},
	} {
		if _, err := ParseOptions(arguments, getenv); err == nil {
			t.Errorf("%v accepted", arguments)
		}
	}
}

func TestAHostEngineIsAskedForByOptionOrEnvironment(t *testing.T) {
	for _, one := range []struct {
		arguments []string
		env       string
		want      string
	}{
		{nil, "", ""},
		{nil, "localhost:5555", "localhost:5555"},
		{[]string{"-r", "localhost:5555", "-c", "1000"}, "", "localhost:5555"},
		{[]string{"-c", "1000", "--remote-hostengine-info=localhost:5555"}, "", "localhost:5555"},
		{[]string{"-c", "1000"}, "", ""},
	} {
		getenv := func(string) string { return one.env }
		if got := RemoteEngine(one.arguments, getenv); got != one.want {
			t.Errorf("%v, %q: %q, not %q", one.arguments, one.env, got, one.want)
		}
	}
}
