package exporter

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

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
