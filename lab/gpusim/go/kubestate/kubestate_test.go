package kubestate

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func resourcesOf(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for index := 0; index < len(pairs); index += 2 {
		list[corev1.ResourceName(pairs[index])] = resource.MustParse(pairs[index+1])
	}
	return list
}

func cluster() []runtime.Object {
	yes := true
	return []runtime.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu1", Labels: map[string]string{"nvidia.com/gpu.present": "true", "zone": "a"}},
			Spec: corev1.NodeSpec{
				Unschedulable: true,
				PodCIDR:       "10.244.1.0/24",
				Taints:        []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}},
			},
			Status: corev1.NodeStatus{
				Addresses:   []corev1.NodeAddress{{Type: "Hostname", Address: "gpu1"}, {Type: "InternalIP", Address: "10.0.0.2"}},
				Capacity:    resourcesOf("cpu", "2500m", "memory", "1Gi", "pods", "110", "nvidia.com/gpu", "2", "nvidia.com/mig-1g.5gb", "7", "hugepages-2Mi", "0", "odd", "3"),
				Allocatable: resourcesOf("nvidia.com/gpu", "1"),
				Conditions:  []corev1.NodeCondition{{Type: "Ready", Status: "Unknown"}},
				NodeInfo: corev1.NodeSystemInfo{
					KernelVersion: "6.1", OSImage: `Debian "12"`, ContainerRuntimeVersion: "containerd://2.4.2",
					KubeletVersion: "v1.36.3", SystemUUID: "uuid-1",
				},
			},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml", Labels: map[string]string{"team": "vision"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ml", Name: "train-0", UID: "u-1", CreationTimestamp: metav1.Unix(1700000000, 0),
				OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "train", Controller: &yes}},
			},
			Spec: corev1.PodSpec{NodeName: "gpu1", Containers: []corev1.Container{{
				Name:      "main",
				Resources: corev1.ResourceRequirements{Requests: resourcesOf("cpu", "100m", "memory", "64Mi", "nvidia.com/gpu", "1")},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.2", PodIP: "10.244.1.5"},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "waits", UID: "u-2"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Requests: resourcesOf("nvidia.com/gpu", "8")},
			}}},
			Status: corev1.PodStatus{
				Phase:      corev1.PodPending,
				Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}},
			},
		},
		&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpus"},
			Status:     corev1.ResourceQuotaStatus{Hard: resourcesOf("requests.nvidia.com/gpu", "4"), Used: resourcesOf("requests.nvidia.com/gpu", "1")},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "stop"}},
		&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin"},
			Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 1},
		},
	}
}

// collect gives the series (without HELP and TYPE) that the arguments ask for.
func collect(t *testing.T, arguments ...string) string {
	t.Helper()
	var series []string
	for _, line := range strings.Split(strings.TrimSpace(collector(t, arguments...).Text()), "\n") {
		if !strings.HasPrefix(line, "#") {
			series = append(series, line)
		}
	}
	return strings.Join(series, "\n") + "\n"
}

func collector(t *testing.T, arguments ...string) *Collector {
	t.Helper()
	options, err := Parse(arguments, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	made := NewCollector(fake.NewClientset(cluster()...), options)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		made.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	for deadline := time.Now().Add(20 * time.Second); !made.Synced(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never synced")
		}
	}
	return made
}

const nodeSeries = `kube_node_info{node="gpu1",kernel_version="6.1",os_image="Debian \"12\"",container_runtime_version="containerd://2.4.2",kubelet_version="v1.36.3",kubeproxy_version="deprecated",provider_id="",pod_cidr="10.244.1.0/24",system_uuid="uuid-1",internal_ip="10.0.0.2"} 1
kube_node_labels{node="gpu1",label_nvidia_com_gpu_present="true"} 1
kube_node_spec_taint{node="gpu1",key="node.kubernetes.io/unschedulable",value="",effect="NoSchedule"} 1
kube_node_spec_unschedulable{node="gpu1"} 1
kube_node_status_allocatable{node="gpu1",resource="nvidia_com_gpu",unit="integer"} 1
kube_node_status_capacity{node="gpu1",resource="cpu",unit="core"} 2.5
kube_node_status_capacity{node="gpu1",resource="hugepages_2Mi",unit="byte"} 0
kube_node_status_capacity{node="gpu1",resource="memory",unit="byte"} 1.073741824e+09
kube_node_status_capacity{node="gpu1",resource="nvidia_com_gpu",unit="integer"} 2
kube_node_status_capacity{node="gpu1",resource="nvidia_com_mig_1g_5gb",unit="integer"} 7
kube_node_status_capacity{node="gpu1",resource="pods",unit="integer"} 110
kube_node_status_condition{node="gpu1",condition="Ready",status="true"} 0
kube_node_status_condition{node="gpu1",condition="Ready",status="false"} 0
kube_node_status_condition{node="gpu1",condition="Ready",status="unknown"} 1
`

const podSeries = `kube_pod_container_resource_requests{namespace="ml",pod="train-0",uid="u-1",container="main",node="gpu1",resource="cpu",unit="core"} 0.1
kube_pod_container_resource_requests{namespace="ml",pod="train-0",uid="u-1",container="main",node="gpu1",resource="memory",unit="byte"} 6.7108864e+07
kube_pod_container_resource_requests{namespace="ml",pod="train-0",uid="u-1",container="main",node="gpu1",resource="nvidia_com_gpu",unit="integer"} 1
kube_pod_container_resource_requests{namespace="other",pod="waits",uid="u-2",container="main",node="",resource="nvidia_com_gpu",unit="integer"} 8
kube_pod_created{namespace="ml",pod="train-0",uid="u-1"} 1.7e+09
kube_pod_info{namespace="ml",pod="train-0",uid="u-1",host_ip="10.0.0.2",pod_ip="10.244.1.5",node="gpu1",created_by_kind="Job",created_by_name="train",priority_class="",host_network="false"} 1
kube_pod_info{namespace="other",pod="waits",uid="u-2",host_ip="",pod_ip="",node="",created_by_kind="",created_by_name="",priority_class="",host_network="false"} 1
kube_pod_owner{namespace="ml",pod="train-0",uid="u-1",owner_kind="Job",owner_name="train",owner_is_controller="true"} 1
kube_pod_owner{namespace="other",pod="waits",uid="u-2",owner_kind="",owner_name="",owner_is_controller=""} 1
kube_pod_status_phase{namespace="ml",pod="train-0",uid="u-1",phase="Pending"} 0
kube_pod_status_phase{namespace="ml",pod="train-0",uid="u-1",phase="Succeeded"} 0
kube_pod_status_phase{namespace="ml",pod="train-0",uid="u-1",phase="Failed"} 0
kube_pod_status_phase{namespace="ml",pod="train-0",uid="u-1",phase="Unknown"} 0
kube_pod_status_phase{namespace="ml",pod="train-0",uid="u-1",phase="Running"} 1
kube_pod_status_phase{namespace="other",pod="waits",uid="u-2",phase="Pending"} 1
kube_pod_status_phase{namespace="other",pod="waits",uid="u-2",phase="Succeeded"} 0
kube_pod_status_phase{namespace="other",pod="waits",uid="u-2",phase="Failed"} 0
kube_pod_status_phase{namespace="other",pod="waits",uid="u-2",phase="Unknown"} 0
kube_pod_status_phase{namespace="other",pod="waits",uid="u-2",phase="Running"} 0
kube_pod_status_unschedulable{namespace="other",pod="waits",uid="u-2"} 1
`

const otherSeries = `kube_daemonset_status_desired_number_scheduled{namespace="gpu-operator",daemonset="plugin"} 2
kube_daemonset_status_number_ready{namespace="gpu-operator",daemonset="plugin"} 1
kube_namespace_labels{namespace="ml",label_team="vision"} 1
kube_namespace_labels{namespace="other"} 1
kube_resourcequota{namespace="ml",resourcequota="gpus",resource="requests.nvidia.com/gpu",type="hard"} 4
kube_resourcequota{namespace="ml",resourcequota="gpus",resource="requests.nvidia.com/gpu",type="used"} 1
`

const allowlist = "--metric-labels-allowlist=nodes=[nvidia.com/gpu.present,nvidia.com/gpu.product],namespaces=[team]"

func TestSeries(t *testing.T) {
	for name, row := range map[string]struct {
		arguments []string
		want      string
	}{
		"nodes":      {[]string{"--resources=nodes,secrets", allowlist}, nodeSeries},
		"pods":       {[]string{"--resources=pods"}, podSeries},
		"the rest":   {[]string{"--resources=daemonsets,namespaces,resourcequotas", allowlist}, otherSeries},
		"ConfigMaps": {[]string{"--resources=configmaps"}, "kube_configmap_info{namespace=\"kube-system\",configmap=\"stop\"} 1\n"},
		"no labels":  {[]string{"--resources=namespaces"}, "\n"},
		"one namespace": {[]string{"--resources=resourcequotas,daemonsets,namespaces", "--namespaces=gpu-operator", "--metric-labels-allowlist=*=[*]"},
			strings.Join(strings.SplitAfter(otherSeries, "\n")[:4], "")},
		"all but one": {[]string{"--resources=daemonsets,resourcequotas", "--namespaces-denylist=ml"},
			strings.Join(strings.SplitAfter(otherSeries, "\n")[:2], "")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := collect(t, row.arguments...); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestEveryFamilyIsDescribed(t *testing.T) {
	text := collector(t).Text()
	if !strings.HasPrefix(text, "# HELP kube_configmap_info [STABLE] Information about configmap.\n# TYPE kube_configmap_info gauge\n") {
		t.Errorf("the text begins %.200q", text)
	}
	if got := strings.Count(text, "# TYPE kube_"); got != 18 {
		t.Errorf("%d families, want 18", got)
	}
}

func TestLabelNames(t *testing.T) {
	object := map[string]string{"nvidia.com/gpu.present": "1", "nodeGroup": "2", "a.b": "3", "a/b": "4", "no": "5"}
	got := told(object, []string{"nvidia.com/*", "nodeGroup", "a.b", "a/b", "*"})
	want := labels("label_a_b_conflict1", "3", "label_a_b_conflict2", "4", "label_node_group", "2", "label_nvidia_com_gpu_present", "1")
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for index := range want {
		if got[index] != want[index] {
			t.Errorf("got %v, want %v", got[index], want[index])
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for argument, want := range map[string]string{
		"--metric-allowlist=kube_pod_info":    "flag provided but not defined: -metric-allowlist",
		"--resources=pods,gpus":               "resource gpus does not exist",
		"--metric-labels-allowlist=gpus=[a]":  "resource gpus does not exist",
		"--metric-labels-allowlist=nodes=a":   "is not of the form",
		"--metric-labels-allowlist=nodes=[a":  "is not of the form",
		"--metric-labels-allowlist=nodes=[]x": "is not of the form",
		"extra":                               `unknown argument "extra"`,
	} {
		var said strings.Builder
		_, err := Parse([]string{argument}, &said)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", argument, err, want)
		}
	}
}

func TestPages(t *testing.T) {
	seen := collector(t, "--resources=nodes")
	unseen := NewCollector(fake.NewClientset(), Options{})
	for name, row := range map[string]struct {
		pages  http.Handler
		path   string
		status int
		text   string
	}{
		"state":      {seen.Metrics(), "/metrics", 200, "kube_node_info{"},
		"landing":    {seen.Metrics(), "/", 200, "SIMULATED"},
		"live":       {unseen.Metrics(), "/livez", 200, "OK"},
		"ready":      {seen.Telemetry(), "/readyz", 200, "OK"},
		"itself":     {seen.Telemetry(), "/metrics", 200, "SIMULATED"},
		"not ready":  {unseen.Telemetry(), "/readyz", 503, "has not been seen"},
		"half state": {unseen.Metrics(), "/metrics", 503, "has not been seen"},
		"unknown":    {seen.Metrics(), "/none", 404, "not found"},
	} {
		answer := httptest.NewRecorder()
		row.pages.ServeHTTP(answer, httptest.NewRequest("GET", row.path, nil))
		if answer.Code != row.status || !strings.Contains(answer.Body.String(), row.text) {
			t.Errorf("%s: %d %.200q", name, answer.Code, answer.Body.String())
		}
	}
}
