package kubestate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A family is all series of one name: how upstream describes it, and what one object adds to it.
type family struct {
	name, help, resource string
	// allow: the labels of the resource's objects that may be told.
	of func(object any, allow []string) []sample
}

// All are gauges, and stable ones by upstream's promise.
var families = []family{
	{"kube_configmap_info", "Information about configmap.", "configmaps", func(object any, _ []string) []sample {
		c := object.(*corev1.ConfigMap)
		return []sample{{labels("namespace", c.Namespace, "configmap", c.Name), 1}}
	}},
	{"kube_daemonset_status_desired_number_scheduled", "The number of nodes that should be running the daemon pod.", "daemonsets",
		daemonSet(func(status appsv1.DaemonSetStatus) int32 { return status.DesiredNumberScheduled })},
	{"kube_daemonset_status_number_ready", "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and ready.", "daemonsets",
		daemonSet(func(status appsv1.DaemonSetStatus) int32 { return status.NumberReady })},
	{"kube_namespace_labels", "Kubernetes labels converted to Prometheus labels.", "namespaces", namespaceLabels},
	{"kube_node_info", "Information about a cluster node.", "nodes", node(nodeInfo)},
	{"kube_node_labels", "Kubernetes labels converted to Prometheus labels.", "nodes", nodeLabels},
	{"kube_node_spec_taint", "The taint of a cluster node.", "nodes", node(nodeTaints)},
	{"kube_node_spec_unschedulable", "Whether a node can schedule new pods.", "nodes", node(func(n *corev1.Node) []sample {
		return []sample{{nil, truth(n.Spec.Unschedulable)}}
	})},
	{"kube_node_status_allocatable", "The allocatable for different resources of a node that are available for scheduling.", "nodes", node(func(n *corev1.Node) []sample {
		return nodeResources(n.Status.Allocatable)
	})},
	{"kube_node_status_capacity", "The capacity for different resources of a node.", "nodes", node(func(n *corev1.Node) []sample {
		return nodeResources(n.Status.Capacity)
	})},
	{"kube_node_status_condition", "The condition of a cluster node.", "nodes", node(nodeConditions)},
	{"kube_pod_container_resource_requests", "The number of requested request resource by a container. It is recommended to use the kube_pod_resource_requests metric exposed by kube-scheduler instead, as it is more precise.", "pods", pod(podRequests)},
	{"kube_pod_created", "Unix creation timestamp", "pods", pod(func(p *corev1.Pod) []sample {
		if p.CreationTimestamp.IsZero() {
			return nil
		}
		return []sample{{nil, float64(p.CreationTimestamp.Unix())}}
	})},
	{"kube_pod_info", "Information about pod.", "pods", pod(podInfo)},
	{"kube_pod_owner", "Information about the Pod's owner.", "pods", pod(podOwners)},
	{"kube_pod_status_phase", "The pods current phase.", "pods", pod(podPhases)},
	{"kube_pod_status_unschedulable", "Describes the unschedulable status for the pod.", "pods", pod(podUnschedulable)},
	{"kube_resourcequota", "Information about resource quota.", "resourcequotas", quota},
}

// each puts an object's own labels before those of its samples.
func each(own []label, samples []sample) []sample {
	for index := range samples {
		samples[index].labels = append(slices.Clone(own), samples[index].labels...)
	}
	return samples
}

func node(of func(*corev1.Node) []sample) func(any, []string) []sample {
	return func(object any, _ []string) []sample {
		n := object.(*corev1.Node)
		return each(labels("node", n.Name), of(n))
	}
}

func pod(of func(*corev1.Pod) []sample) func(any, []string) []sample {
	return func(object any, _ []string) []sample {
		p := object.(*corev1.Pod)
		return each(labels("namespace", p.Namespace, "pod", p.Name, "uid", string(p.UID)), of(p))
	}
}

func daemonSet(count func(appsv1.DaemonSetStatus) int32) func(any, []string) []sample {
	return func(object any, _ []string) []sample {
		d := object.(*appsv1.DaemonSet)
		return []sample{{labels("namespace", d.Namespace, "daemonset", d.Name), float64(count(d.Status))}}
	}
}

// Without a list for its resource there is no series at all; with one, each object has its series.
func nodeLabels(object any, allow []string) []sample {
	n := object.(*corev1.Node)
	return labelled(labels("node", n.Name), n.Labels, allow)
}

func namespaceLabels(object any, allow []string) []sample {
	n := object.(*corev1.Namespace)
	return labelled(labels("namespace", n.Name), n.Labels, allow)
}

func labelled(own []label, object map[string]string, allow []string) []sample {
	if len(allow) == 0 {
		return nil
	}
	return []sample{{append(own, told(object, allow)...), 1}}
}

func nodeInfo(n *corev1.Node) []sample {
	address := ""
	for _, one := range n.Status.Addresses {
		if one.Type == corev1.NodeInternalIP {
			address = one.Address
		}
	}
	info := n.Status.NodeInfo
	return []sample{{labels(
		"kernel_version", info.KernelVersion,
		"os_image", info.OSImage,
		"container_runtime_version", info.ContainerRuntimeVersion,
		"kubelet_version", info.KubeletVersion,
		"kubeproxy_version", "deprecated",
		"provider_id", n.Spec.ProviderID,
		"pod_cidr", n.Spec.PodCIDR,
		"system_uuid", info.SystemUUID,
		"internal_ip", address,
	), 1}}
}

func nodeTaints(n *corev1.Node) []sample {
	var made []sample
	for _, taint := range n.Spec.Taints {
		made = append(made, sample{labels("key", taint.Key, "value", taint.Value, "effect", string(taint.Effect)), 1})
	}
	return made
}

func nodeResources(list corev1.ResourceList) []sample {
	var made []sample
	for _, name := range slices.Sorted(maps.Keys(list)) {
		unit := unitOf(name)
		if name == corev1.ResourcePods {
			unit = "integer"
		}
		if unit != "" {
			made = append(made, sample{labels("resource", sanitised(string(name)), "unit", unit), number(list[name])})
		}
	}
	return made
}

func nodeConditions(n *corev1.Node) []sample {
	var made []sample
	for _, condition := range n.Status.Conditions {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
			of := labels("condition", string(condition.Type), "status", strings.ToLower(string(status)))
			made = append(made, sample{of, truth(condition.Status == status)})
		}
	}
	return made
}

func podRequests(p *corev1.Pod) []sample {
	var made []sample
	for _, container := range p.Spec.Containers {
		for _, name := range slices.Sorted(maps.Keys(container.Resources.Requests)) {
			unit, quantity := unitOf(name), container.Resources.Requests[name]
			if unit == "" {
				continue
			}
			value := float64(quantity.Value())
			if name == corev1.ResourceCPU {
				value = number(quantity)
			}
			of := labels("container", container.Name, "node", p.Spec.NodeName, "resource", sanitised(string(name)), "unit", unit)
			made = append(made, sample{of, value})
		}
	}
	return made
}

func podInfo(p *corev1.Pod) []sample {
	kind, name := "", ""
	if owner := metav1.GetControllerOf(p); owner != nil {
		kind, name = owner.Kind, owner.Name
	}
	return []sample{{labels(
		"host_ip", p.Status.HostIP,
		"pod_ip", p.Status.PodIP,
		"node", p.Spec.NodeName,
		"created_by_kind", kind,
		"created_by_name", name,
		"priority_class", p.Spec.PriorityClassName,
		"host_network", strconv.FormatBool(p.Spec.HostNetwork),
	), 1}}
}

func podOwners(p *corev1.Pod) []sample {
	of := func(kind, name, controls string) sample {
		return sample{labels("owner_kind", kind, "owner_name", name, "owner_is_controller", controls), 1}
	}
	if len(p.OwnerReferences) == 0 {
		return []sample{of("", "", "")}
	}
	var made []sample
	for _, owner := range p.OwnerReferences {
		controls := owner.Controller != nil && *owner.Controller
		made = append(made, of(owner.Kind, owner.Name, strconv.FormatBool(controls)))
	}
	return made
}

func podPhases(p *corev1.Pod) []sample {
	if p.Status.Phase == "" {
		return nil
	}
	var made []sample
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown, corev1.PodRunning} {
		made = append(made, sample{labels("phase", string(phase)), truth(p.Status.Phase == phase)})
	}
	return made
}

// There is a series only while the scheduler has found no node: never one with 0.
func podUnschedulable(p *corev1.Pod) []sample {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return []sample{{nil, 1}}
		}
	}
	return nil
}

// The name of a quota's resource stays as Kubernetes writes it: requests.nvidia.com/gpu.
func quota(object any, _ []string) []sample {
	q := object.(*corev1.ResourceQuota)
	var made []sample
	for _, side := range []struct {
		kind string
		list corev1.ResourceList
	}{{"hard", q.Status.Hard}, {"used", q.Status.Used}} {
		for _, name := range slices.Sorted(maps.Keys(side.list)) {
			made = append(made, sample{labels("resource", string(name), "type", side.kind), number(side.list[name])})
		}
	}
	return each(labels("namespace", q.Namespace, "resourcequota", q.Name), made)
}
