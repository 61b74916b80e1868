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

// Pod is the container that holds a GPU.
type Pod struct{ Namespace, Name, Container string }

func (p Pod) labels(old bool) []label {
	if old {
		return []label{
			{"container_name", p.Container}, {"pod_name", p.Name}, {"pod_namespace", p.Namespace},
		}
	}
	return []label{{"container", p.Container}, {"namespace", p.Namespace}, {"pod", p.Name}}
}

// Pods asks the kubelet, over its pod-resources socket, who holds which GPU (by UUID). `resources`
// names further resources, beyond nvidia.com/gpu and MIG devices, that are GPUs.
func Pods(ctx context.Context, socket string, resources []string) (map[string]Pod, error) {
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

func holders(pods []*podresources.PodResources, resources []string) map[string]Pod {
	found := map[string]Pod{}
	for _, pod := range pods {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				name := devices.GetResourceName()
				if name != gpuResource && !strings.HasPrefix(name, migResource) &&
					!slices.Contains(resources, name) {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					uuid, _, _ := strings.Cut(id, "::") // a share of a GPU is "UUID::number"
					found[uuid] = Pod{pod.GetNamespace(), pod.GetName(), container.GetName()}
				}
			}
		}
	}
	return found
}
