package operator

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var gpuNode = map[string]string{nfdPrefix + "pci-10de.present": "true"}

func TestLabelChanges(t *testing.T) {
	changes := LabelChanges(gpuNode)
	if len(changes) != 1+len(operands) || *changes[presentLabel] != "true" {
		t.Errorf("changes of a new GPU node: %v", changes)
	}
	done := map[string]string{nfdPrefix + "pci-0302_10de.present": "true", presentLabel: "true"}
	for _, operand := range operands {
		done[deployPrefix+operand] = "true"
	}
	done[deployPrefix+"dcgm"] = "false" // an administrator's choice
	if changes := LabelChanges(done); len(changes) != 0 {
		t.Errorf("changes of a node that is labelled: %v", changes)
	}
	delete(done, nfdPrefix+"pci-0302_10de.present")
	changes = LabelChanges(done)
	if len(changes) != 1+len(operands) || changes[presentLabel] != nil {
		t.Errorf("changes of a node whose GPUs are gone: %v", changes)
	}
	done[nfdPrefix+"pci-10de.present"], done[operandsLabel] = "true", "false"
	changes = LabelChanges(done)
	if len(changes) != len(operands) {
		t.Errorf("changes of a node without operands: %v", changes)
	}
}

// As controllers/nodelabeling_controller_test.go:508 of the real operator v26.7.0.
func TestMIGLayoutsByHandAreUndone(t *testing.T) {
	for name, test := range map[string]struct {
		labels  map[string]string
		manager bool
		config  string
	}{
		"no layout":      {map[string]string{migCapable: "true"}, true, migDisabled},
		"by its product": {map[string]string{productLabel: "NVIDIA-A100-SXM4-40GB"}, true, migDisabled},
		"no manager":     {map[string]string{migCapable: "true"}, false, ""},
		"a layout":       {map[string]string{migCapable: "true", migConfig: "all-1g.5gb"}, true, ""},
		"cannot do it":   {map[string]string{migCapable: "false", productLabel: "A100"}, true, ""},
	} {
		labels := map[string]string{nfdPrefix + "pci-10de.present": "true"}
		for label, value := range test.labels {
			labels[label] = value
		}
		if config := MIGConfig(labels, test.manager, migDisabled); config != test.config {
			t.Errorf("%s: %q", name, config)
		}
	}
	if config := MIGConfig(map[string]string{migCapable: "true"}, true, migDisabled); config != "" {
		t.Errorf("a node without GPUs: %q", config)
	}
}

func daemonSet(desired, updated, available int32) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "nvidia-dcgm-exporter", Namespace: "gpu-operator", Generation: 2,
			Labels: map[string]string{managedLabel: "Helm"},
		},
	}
	set.Spec.Template.Labels = map[string]string{managedLabel: managedValue}
	set.Spec.Template.Spec.NodeSelector = map[string]string{deployPrefix + "dcgm-exporter": "true"}
	set.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: 2, DesiredNumberScheduled: desired, UpdatedNumberScheduled: updated,
		NumberAvailable: available,
	}
	return set
}

func TestJudge(t *testing.T) {
	nodes := []map[string]string{gpuNode, gpuNode, {nfdPrefix + "cpu": "true"}}
	for name, test := range map[string]struct {
		nodes  []map[string]string
		set    *appsv1.DaemonSet
		state  string
		reason string
	}{
		"all run":            {nodes, daemonSet(2, 2, 2), "ready", "Reconciled"},
		"one is missing":     {nodes, daemonSet(2, 2, 1), "notReady", "OperandNotReady"},
		"an old one runs":    {nodes, daemonSet(2, 1, 2), "notReady", "OperandNotReady"},
		"nothing scheduled":  {nodes, daemonSet(0, 0, 0), "notReady", "OperandNotReady"},
		"no GPU node":        {nodes[2:], daemonSet(0, 0, 0), "ready", "NoGPUNodes"},
		"no NFD in the node": {[]map[string]string{{}}, daemonSet(0, 0, 0), "ready", "NFDLabelsMissing"},
	} {
		state := Judge(test.nodes, []*appsv1.DaemonSet{test.set})
		if state.State != test.state || state.Reason != test.reason {
			t.Errorf("%s: %+v", name, state)
		}
	}
}

func object(t *testing.T, from any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func TestControllerLabelsNodesAndWritesTheState(t *testing.T) {
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": "gpu1", "labels": map[string]any{nfdPrefix + "pci-10de.present": "true"}},
	}}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
		"metadata": map[string]any{"name": policyName},
	}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			nodeResource: "NodeList", daemonSetResource: "DaemonSetList", policyResource: "ClusterPolicyList",
		}, node, object(t, daemonSet(1, 1, 1)))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := client.Resource(policyResource).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controller := &Controller{Client: client, Namespace: "gpu-operator", Metrics: &Metrics{}}
	go controller.Run(ctx)
	for ctx.Err() == nil {
		node, _ := client.Resource(nodeResource).Get(ctx, "gpu1", metav1.GetOptions{})
		policy, _ := client.Resource(policyResource).Get(ctx, policyName, metav1.GetOptions{})
		state := ""
		if policy != nil {
			state, _, _ = unstructured.NestedString(policy.Object, "status", "state")
		}
		if node != nil && node.GetLabels()[deployPrefix+"device-plugin"] == "true" && state == "ready" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the node was not labelled or the policy is not ready")
}

func TestValidatorOfTheDevicePlugin(t *testing.T) {
	output := t.TempDir()
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "gpu1"},
		"status": map[string]any{"capacity": map[string]any{"cpu": "2", "nvidia.com/gpu": "2"}},
	}}
	validator := Validator{
		Component: "plugin", OutputDir: output, NodeName: "gpu1",
		Client: func() (dynamic.Interface, error) {
			return fake.NewSimpleDynamicClient(runtime.NewScheme(), node), nil
		},
	}
	if err := validator.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(output, "plugin-ready")); err != nil {
		t.Error(err)
	}
	if offersGPUs(map[string]string{"cpu": "2", "nvidia.com/gpu": "0"}) {
		t.Error("0 GPUs are no GPUs")
	}
}

func TestValidatorOfTheToolkitNeedsNvidiaSmi(t *testing.T) {
	output := t.TempDir()
	ready := filepath.Join(output, "toolkit-ready")
	if err := os.WriteFile(ready, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", output)
	validator := Validator{Component: "toolkit", OutputDir: output}
	if err := validator.Run(context.Background()); err == nil {
		t.Error("validated without nvidia-smi")
	}
	if _, err := os.Stat(ready); err == nil {
		t.Error("the file of an earlier validation was left")
	}
	script := "#!/bin/sh\nexit 0\n"
	if err := os.WriteFile(filepath.Join(output, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := validator.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestValidatorRefusesAnUnknownComponent(t *testing.T) {
	err := Validator{Component: "warp", OutputDir: t.TempDir()}.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "warp") {
		t.Errorf("error %v", err)
	}
}

func TestIdleTakesTheFilesAway(t *testing.T) {
	output := t.TempDir()
	for _, name := range []string{"driver-ready", "notes"} {
		if err := os.WriteFile(filepath.Join(output, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Idle(ctx, output); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(output)
	if len(left) != 1 || left[0].Name() != "notes" {
		t.Errorf("left: %v", left)
	}
}

func TestMetricsHaveTheRealNames(t *testing.T) {
	var metrics Metrics
	metrics.Failed()
	metrics.Reconciled(
		[]map[string]string{{"feature.node.kubernetes.io/pci-10de.present": "true"}, {}},
		State{State: "ready"})
	answer := httptest.NewRecorder()
	metrics.ServeHTTP(answer, nil)
	body := answer.Body.String()
	for _, line := range []string{
		"gpu_operator_gpu_nodes_total 1", "gpu_operator_reconciliation_status 1",
		"gpu_operator_reconciliation_total 2", "gpu_operator_reconciliation_failed_total 1",
		"gpu_operator_nodes_upgrades_failed 0", "gpu_operator_driver_auto_upgrade_enabled 0",
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no %q in\n%s", line, body)
		}
	}
	metrics.Reconciled(nil, State{State: "notReady"})
	answer = httptest.NewRecorder()
	metrics.ServeHTTP(answer, nil)
	if body := answer.Body.String(); !strings.Contains(body, "reconciliation_status 0\n") {
		t.Errorf("a policy that is not ready counts as success:\n%s", body)
	}
}
