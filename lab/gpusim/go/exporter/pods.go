package exporter

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	gpuResource = "nvidia.com/gpu"
	migResource = "nvidia.com/mig-"
)

// Pod is the container that holds a GPU, or a share of one.
type Pod struct {
	Namespace, Name, Container string
	Share                      string            // of a GPU that is shared; "" for a whole one
	UID                        string            // from the API server; "" when not asked for
	Labels                     map[string]string // likewise, the allowed ones
}

// Holders are the pods that hold a GPU, by its UUID.
type Holders map[string][]Pod

func (p Pod) labels(view View) []label {
	names := []string{"container", "namespace", "pod"}
	if view.OldNames {
		names = []string{"container_name", "pod_namespace", "pod_name"}
	}
	labels := []label{{names[0], p.Container}, {names[1], p.Namespace}, {names[2], p.Name}}
	if view.PodUID && p.UID != "" {
		labels = append(labels, label{"pod_uid", p.UID})
	}
	if view.SharedGPUs && p.Share != "" {
		labels = append(labels, label{"vgpu", p.Share})
	}
	return labels
}

// Pods asks the kubelet, over its pod-resources socket, who holds which GPU (by UUID). `resources`
// names further resources, beyond nvidia.com/gpu and MIG devices, that are GPUs.
func Pods(ctx context.Context, socket string, resources []string) (Holders, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	list, err := podresources.NewPodResourcesListerClient(connection).List(ctx,
		&podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return holders(list.GetPodResources(), resources), nil
}

func holders(pods []*podresources.PodResources, resources []string) Holders {
	found := Holders{}
	for _, pod := range pods {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				name := devices.GetResourceName()
				if name != gpuResource && !strings.HasPrefix(name, migResource) &&
					!slices.Contains(resources, name) {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					uuid, share, _ := strings.Cut(id, "::") // a share of a GPU is "UUID::number"
					found[uuid] = append(found[uuid], Pod{
						Namespace: pod.GetNamespace(), Name: pod.GetName(),
						Container: container.GetName(), Share: share,
					})
				}
			}
		}
	}
	return found
}
