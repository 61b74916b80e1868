package exporter

import (
	"context"
	"errors"
	"reflect"
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

func TestWindowedCountsForgetAndHaveAZeroRow(t *testing.T) {
	list := counters(t, "DCGM_EXP_XID_ERRORS_COUNT, gauge, c", "DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, c")
	gpus := Sample(library("GPU-a"), list, nil, &Trends{})
	events, now := NewEvents(), time.Now()
	events.AddXID("GPU-a", 31, now.Add(-time.Hour))
	events.AddClocks("GPU-a", 0x48, now)
	events.AddClocks("GPU-a", 0x40, now)
	minute := View{XIDWindow: time.Minute, ClockWindow: time.Minute, Now: now}
	contains(t, render(list, gpus, events, minute),
		`window_size_in_ms="60000"} 0`, `clock_event="hw_thermal"} 2`, `clock_event="hw_slowdown"} 1`)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in\n%s", part, text)
		}
	}
}

func TestTotalsAreBornAtOneAndBeginAnewWithTheCounters(t *testing.T) {
	list := counters(t, "DCGM_EXP_XID_ERRORS_TOTAL, counter, c",
		"DCGM_EXP_CLOCK_EVENTS_TOTAL, counter, c", "DCGM_FI_DEV_XID_ERRORS, gauge, last",
		"DCGM_EXP_GPU_HEALTH_STATUS, gauge, health")
	gpus := Sample(library("GPU-a"), list, nil, &Trends{})
	events, now := NewEvents(), time.Now()
	events.AddClocks("GPU-a", 0x01, now)
	if got := render(list, gpus, events, View{}); strings.Contains(got, "_TOTAL{") {
		t.Errorf("a total before anything happened, or of a reason that was there from the start:\n%s", got)
	}
	events.AddXID("GPU-a", 31, now)
	events.AddXID("GPU-a", 95, now)
	for _, reasons := range []uint64{0x48, 0x48, 0x00, 0x48} {
		events.AddClocks("GPU-a", reasons, now)
	}
	contains(t, render(list, gpus, events, View{}), `xid="31"} 1`, `xid="95"} 1`,
		`clock_event="hw_thermal"} 2`, `clock_event="hw_slowdown"} 2`)
	events.Recreate()
	got := render(list, gpus, events, View{})
	if strings.Contains(got, "_TOTAL{") {
		t.Errorf("totals outlived the counters file:\n%s", got)
	}
	contains(t, got, `err_msg="Uncontained ECC error"} 95`,
		`health_error_code="DCGM_FR_UNCONTAINED_ERROR",health_watch="ALL"} 20`)
}

func TestHealthTakesTheWorseOfStateAndHistory(t *testing.T) {
	for _, check := range []struct {
		watch  string
		health Health
		xids   map[int]bool
		want   int
	}{
		{"ALL", nil, nil, pass},
		{"ALL", nil, map[int]bool{31: true}, pass},
		{"MEM", nil, map[int]bool{31: true}, warn},
		{"ALL", nil, map[int]bool{94: true}, warn},
		{"ALL", nil, map[int]bool{94: true, 119: true}, fail},
		{"MEM", Health{"MEM": {fail, "DCGM_FR_FAULTY_MEMORY"}}, map[int]bool{63: true}, fail},
		{"PCIE", Health{"MEM": {fail, "x"}}, map[int]bool{79: true}, pass},
	} {
		if got := check.health.verdict(check.watch, check.xids); got.Status != check.want {
			t.Errorf("%s with %v and XIDs %v: %v", check.watch, check.health, check.xids, got)
		}
	}
}

func TestTrendsLookBackOneMinute(t *testing.T) {
	var trends Trends
	start := time.Now()
	for _, step := range []struct {
		seconds     int
		value, want uint64
	}{
		{0, 1000, 0}, {30, 1010, 10}, {60, 1010, 10}, {89, 1010, 10}, {90, 1010, 0}, {120, 1300, 290},
		{130, 0, 0}, {140, 5, 5},
	} {
		at := start.Add(time.Duration(step.seconds) * time.Second)
		if got := trends.Gain("GPU-a", "x", step.value, at); got != step.want {
			t.Errorf("after %d s: gained %d, not %d", step.seconds, got, step.want)
		}
		if got := trends.Gain("GPU-b", "x", 7, at); got != 0 {
			t.Errorf("another GPU gained %d", got)
		}
	}
}

func TestASharedGPUHasASeriesForEachPod(t *testing.T) {
	list := counters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, t")
	gpus := Sample(library("GPU-a", "GPU-b"), list, nil, &Trends{})
	view := View{SharedGPUs: true, PodUID: true, Pods: Holders{"GPU-a": {
		{Namespace: "ml", Name: "a", Container: "main", Share: "0", UID: "uid-a"},
		{Namespace: "ml", Name: "b", Container: "main", Share: "1"},
	}}}
	got := render(list, gpus, NewEvents(), view)
	contains(t, got, `pod="a",pod_uid="uid-a",vgpu="0"} 70`, `pod="b",vgpu="1"} 70`,
		"UUID=\"GPU-b\",pci_bus_id=\"00000000:10:00.0\",device=\"nvidia1\",modelName=")
	if lines := strings.Count(got, "DCGM_FI_DEV_GPU_TEMP{"); lines != 3 {
		t.Errorf("%d series, not 3:\n%s", lines, got)
	}
	view.SharedGPUs = false
	if got := render(list, gpus, NewEvents(), view); strings.Contains(got, `pod="a"`) {
		t.Errorf("of several pods the last is shown:\n%s", got)
	}
}

func TestOnlyTheLoadOfAPodIsItsPart(t *testing.T) {
	list := counters(t, "DCGM_FI_DEV_GPU_UTIL, gauge, u", "DCGM_FI_DEV_MEM_COPY_UTIL, gauge, m")
	gpus := []GPU{{UUID: "GPU-a", Values: map[string]string{
		"DCGM_FI_DEV_GPU_UTIL": "90", "DCGM_FI_DEV_MEM_COPY_UTIL": "45"}}}
	view := View{SharedGPUs: true, Pods: Holders{"GPU-a": {{Name: "a"}, {Name: "b"}}}}
	got := render(list, gpus, NewEvents(), view)
	contains(t, got, `modelName=""} 90`, `pod="a"} 45`, `pod="b"} 45`)
	if strings.Count(got, "DCGM_FI_DEV_GPU_UTIL{") != 3 || strings.Count(got, "MEM_COPY_UTIL{") != 2 {
		t.Errorf("the GPU's own load and one series a pod:\n%s", got)
	}
}

func TestPodLabelsAreFilteredAndGiveWay(t *testing.T) {
	calls := 0
	metadata := &Metadata{labels: true, list: func(context.Context) (map[string]Pod, error) {
		calls++
		return map[string]Pod{"ml/a": {UID: "uid-a", Labels: map[string]string{
			"app.kubernetes.io/name": "train", "team": "vision", "secret": "x", "pod": "no"}}}, nil
	}}
	metadata.allow([]string{"^app", "^team$", "^pod$", "("})
	holders := Holders{"GPU-a": {{Namespace: "ml", Name: "a"}}, "GPU-b": {{Namespace: "ml", Name: "new"}}}
	for range 2 {
		if err := metadata.Add(context.Background(), holders); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("the API server was asked %d times", calls)
	}
	list := counters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, t")
	gpus := Sample(library("GPU-a", "GPU-b"), list, nil, &Trends{})
	got := render(list, gpus, NewEvents(), View{Pods: holders})
	contains(t, got, `pod="a",app_kubernetes_io_name="train",team="vision"} 70`, `pod="new"} 70`)
	if strings.Contains(got, "secret") || strings.Contains(got, `"no"`) {
		t.Errorf("a label that is not allowed, or that is the exporter's own:\n%s", got)
	}
}

func TestPodsAreShownWithoutAnAPIServer(t *testing.T) {
	metadata := &Metadata{labels: true, list: func(context.Context) (map[string]Pod, error) {
		return nil, errors.New("forbidden")
	}}
	holders := Holders{"GPU-a": {{Namespace: "ml", Name: "a"}}}
	if err := metadata.Add(context.Background(), holders); err == nil {
		t.Error("no error")
	}
	if holders["GPU-a"][0].Name != "a" {
		t.Errorf("holders %v", holders)
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
	want := []Pod{{Namespace: "ml", Name: "train-0", Container: "main", Share: "3"}}
	if len(found) != 3 || !reflect.DeepEqual(found["GPU-b"], want) {
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
		{"--no-such-option"}, {"--kubernetes=perhaps"}, {"--kubernetes-enable-dra"},
		{"-r", "dcgm:5555"},
	} {
		if _, err := ParseOptions(arguments, getenv); err == nil {
			t.Errorf("%v accepted", arguments)
		}
	}
}
