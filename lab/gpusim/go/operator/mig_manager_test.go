package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

const layouts = `version: v1
mig-configs:
  all-disabled:
  - {devices: all, mig-enabled: false}
  half-0a1b2c3d:
  - devices: [0]
    mig-enabled: true
    mig-devices: {1g.10gb: 2, 3g.40gb: 1}
  - {devices: [1], mig-enabled: false}
  both:
  - {device-filter: ["0x20B210DE"], devices: all, mig-enabled: true, mig-devices: {1g.20gb: 4}}
  - {device-filter: ["0x233010DE"], devices: all, mig-enabled: true, mig-devices: {7g.80gb: 1}}
  others:
  - {device-filter: ["0x20B210DE"], devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}
`

// host is a machine with two GPUs, as its nvidia-smi and systemctl tell.
type host struct {
	enabled   [2]bool
	instances [2][]string
	commands  []string // those that change something
	fail      string
}

func (h *host) run(_ context.Context, words ...string) (string, error) {
	command := strings.Join(words, " ")
	switch {
	case strings.Contains(command, "--query-gpu"):
		var lines strings.Builder
		for i, on := range h.enabled {
			fmt.Fprintf(&lines, "%d, 0x233010DE, %s\n", i, map[bool]string{true: "Enabled", false: "Disabled"}[on])
		}
		return lines.String(), nil
	case command == "nvidia-smi -L":
		var lines strings.Builder
		for i, profiles := range h.instances {
			fmt.Fprintf(&lines, "GPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-%d)\n", i, i)
			for at, profile := range profiles {
				fmt.Fprintf(&lines, "  MIG %-12sDevice %2d: (UUID: MIG-%d)\n", profile, at, at)
			}
		}
		return lines.String(), nil
	}
	h.commands = append(h.commands, command)
	if strings.HasSuffix(command, "-dci") && strings.Contains(h.fail, "-dgi") {
		return "", errors.New("exit status 6") // only what it cannot destroy is left
	}
	if h.fail != "" && strings.Contains(command, h.fail) {
		return "", errors.New("In use by another client")
	}
	var gpu int
	switch {
	case words[0] != "nvidia-smi":
	case words[1] == "-i":
		_, _ = fmt.Sscan(words[2], &gpu)
		h.enabled[gpu] = words[4] == "1"
	case words[4] == "-dgi":
		_, _ = fmt.Sscan(words[3], &gpu)
		h.instances[gpu] = nil
	case words[4] == "-cgi":
		_, _ = fmt.Sscan(words[3], &gpu)
		h.instances[gpu] = strings.Split(words[5], ",")
	}
	return "", nil
}

func (h *host) Unit(_ context.Context, name string) (Unit, error) {
	running := Unit{Found: true, Active: true, Enabled: true}
	known := map[string]Unit{
		"kubelet.service": running, "nvidia-dcgm.service": running,
		"dcgm.service": {Found: true, Enabled: true}, "dcgm-exporter.service": {Found: true},
	}
	return known[name], nil
}

func (h *host) Stop(_ context.Context, name string) error {
	h.commands = append(h.commands, "stop "+name)
	return nil
}

func (h *host) Start(_ context.Context, name string) error {
	h.commands = append(h.commands, "start "+name)
	return nil
}

func (h *host) Close() {}

func manager(t *testing.T, machine *host) (MIGManager, func() map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(layouts), 0o600); err != nil {
		t.Fatal(err)
	}
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{
			"name":   "gpu1",
			"labels": map[string]any{deployPrefix + "dcgm": "false", deployPrefix + "device-plugin": "true"},
		},
	}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{podResource: "PodList", nodeResource: "NodeList"}, node)
	made := MIGManager{
		Client: client, NodeName: "gpu1", Namespace: "gpu-operator",
		Layouts: func() (Layouts, error) { return ReadLayouts(path) },
		Services: []string{
			"nvsm.service", "nvidia-dcgm.service", "dcgm.service", "dcgm-exporter.service",
		},
		Host: machine.run,
		Units: func(context.Context) (Units, error) {
			if machine.fail == "bus" {
				return nil, errors.New("no bus")
			}
			return machine, nil
		},
	}
	return made, func() map[string]string {
		labels, err := made.labels(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return labels
	}
}

func reconfigured(t *testing.T, machine *host, name string) (map[string]string, error) {
	t.Helper()
	made, labels := manager(t, machine)
	err := made.reconfigure(context.Background(), name, labels())
	return labels(), err
}

func TestALayoutIsMade(t *testing.T) {
	machine := &host{}
	labels, err := reconfigured(t, machine, "half-0a1b2c3d")
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		"stop nvidia-dcgm.service", "stop kubelet.service",
		"nvidia-smi -i 0 -mig 1", "nvidia-smi mig -i 0 -cgi 3g.40gb,1g.10gb,1g.10gb -C",
		"start kubelet.service", "start dcgm.service", "start nvidia-dcgm.service",
	}
	if !slices.Equal(machine.commands, wanted) {
		t.Errorf("commands: %q", machine.commands)
	}
	if labels[migState] != migSuccess || labels[deployPrefix+"device-plugin"] != "true" ||
		labels[deployPrefix+"dcgm"] != "false" {
		t.Errorf("labels: %v", labels)
	}
}

func TestWhatIsThereIsLeft(t *testing.T) {
	machine := &host{
		enabled:   [2]bool{true, false},
		instances: [2][]string{{"3g.40gb", "1g.10gb", "1g.10gb"}, nil},
	}
	labels, err := reconfigured(t, machine, "half-0a1b2c3d")
	if err != nil || labels[migState] != migSuccess || machine.commands != nil {
		t.Errorf("error %v, labels %v, commands %q", err, labels, machine.commands)
	}
}

func TestOtherInstancesLeaveTheKubeletAlone(t *testing.T) {
	machine := &host{enabled: [2]bool{true, false}, instances: [2][]string{{"7g.80gb"}, nil}}
	if _, err := reconfigured(t, machine, "half-0a1b2c3d"); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(machine.commands, "stop kubelet.service") {
		t.Errorf("commands: %q", machine.commands)
	}
	if at := slices.Index(machine.commands, "nvidia-smi mig -i 0 -dgi"); at < 0 ||
		machine.commands[at-1] != "nvidia-smi mig -i 0 -dci" {
		t.Errorf("commands: %q", machine.commands)
	}
}

func TestALayoutThatFailsIsSaidAndTheHostServesAgain(t *testing.T) {
	machine := &host{fail: "-mig 1"}
	labels, err := reconfigured(t, machine, "half-0a1b2c3d")
	if err == nil || labels[migState] != migFailed ||
		labels[deployPrefix+"device-plugin"] != "true" {
		t.Errorf("error %v, labels %v", err, labels)
	}
	if last := machine.commands[len(machine.commands)-1]; last != "start nvidia-dcgm.service" {
		t.Errorf("commands: %q", machine.commands)
	}
}

func TestAGPUInstanceThatIsNotListedGoesAsWell(t *testing.T) {
	machine := &host{enabled: [2]bool{true, false}, fail: "mig -i 1 -dgi"}
	labels, err := reconfigured(t, machine, "all-disabled")
	wanted := []string{
		"stop nvidia-dcgm.service", "stop kubelet.service",
		"nvidia-smi mig -i 0 -dci", "nvidia-smi mig -i 0 -dgi", "nvidia-smi -i 0 -mig 0",
		"start kubelet.service", "start dcgm.service", "start nvidia-dcgm.service",
	}
	if err != nil || labels[migState] != migSuccess || !slices.Equal(machine.commands, wanted) {
		t.Errorf("error %v, labels %v, commands %q", err, labels, machine.commands)
	}
}

func TestAHostWithoutABusIsLeftAsItIs(t *testing.T) {
	machine := &host{fail: "bus"}
	labels, err := reconfigured(t, machine, "half-0a1b2c3d")
	if err == nil || labels[migState] != "" || machine.commands != nil {
		t.Errorf("error %v, labels %v, commands %q", err, labels, machine.commands)
	}
}

func TestALayoutThatNobodyKnowsTouchesNothing(t *testing.T) {
	machine := &host{}
	labels, err := reconfigured(t, machine, "all-1g.99gb")
	if err == nil || labels[migState] != migFailed || machine.commands != nil {
		t.Errorf("error %v, labels %v, commands %q", err, labels, machine.commands)
	}
}

func TestALayoutOfOtherModelsIsThereAlready(t *testing.T) {
	machine := &host{}
	labels, err := reconfigured(t, machine, "others")
	if err != nil || labels[migState] != migSuccess || machine.commands != nil {
		t.Errorf("error %v, labels %v, commands %q", err, labels, machine.commands)
	}
}

func TestEachModelHasItsPartOfALayout(t *testing.T) {
	machine := &host{}
	labels, err := reconfigured(t, machine, "both")
	if err != nil || labels[migState] != migSuccess {
		t.Errorf("error %v, labels %v", err, labels)
	}
	for i, profiles := range machine.instances {
		if !slices.Equal(profiles, []string{"7g.80gb"}) {
			t.Errorf("GPU %d: %q", i, profiles)
		}
	}
}

func TestLayoutsWithoutAFile(t *testing.T) {
	listed := `| GPU instance profiles:                                                      |
|   0  MIG 1g.10gb       19     7/7        9.75      No     16     1     0   |
|                                                             1     1     0   |
|   0  MIG 1g.10gb+me    20     1/1        9.75      No     16     1     0   |
|   0  MIG 1g.20gb       15     4/4       19.62      No     26     1     0   |
|   0  MIG 2g.20gb       14     3/3       19.62      No     32     2     0   |
|   0  MIG 3g.40gb        9     2/2       39.50      No     60     3     0   |
|   0  MIG 7g.80gb        0     1/1       79.25      No    132     7     0   |
|   1  MIG 1g.10gb       19     7/7        9.75      No     16     1     0   |
`
	found, err := Generated(context.Background(), func(context.Context, ...string) (string, error) {
		return listed, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]map[string]int{
		"all-disabled": nil, "all-1g.10gb": {"1g.10gb": 7}, "all-1g.10gb.me": {"1g.10gb+me": 1},
		"all-1g.20gb": {"1g.20gb": 4}, "all-2g.20gb": {"2g.20gb": 3}, "all-3g.40gb": {"3g.40gb": 2},
		"all-7g.80gb":  {"7g.80gb": 1},
		"all-balanced": {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
	}
	for name, instances := range wanted {
		if parts := found[name]; len(parts) != 1 || !maps.Equal(parts[0].Instances, instances) {
			t.Errorf("%s: %v", name, parts)
		}
	}
	if len(found) != len(wanted) {
		t.Errorf("layouts: %v", slices.Sorted(maps.Keys(found)))
	}
}
