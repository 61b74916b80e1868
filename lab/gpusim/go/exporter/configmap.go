package exporter

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// ReadCountersConfigMap reads the key "metrics" of the ConfigMap "namespace:name" of the cluster
// in which the exporter runs.
func ReadCountersConfigMap(name string) (Counters, error) {
	namespace, object, ok := strings.Cut(name, ":")
	if !ok {
		return Counters{}, fmt.Errorf("malformed configmap-data '%s'", name)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return Counters{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Counters{}, err
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	found, err := client.Resource(resource).Namespace(namespace).Get(
		context.Background(), object, metav1.GetOptions{})
	if err != nil {
		return Counters{}, fmt.Errorf("could not retrieve ConfigMap '%s'; err: %w", name, err)
	}
	text, ok, err := unstructured.NestedString(found.Object, "data", "metrics")
	if err != nil || !ok {
		return Counters{}, fmt.Errorf("malformed ConfigMap '%s'; no 'metrics' key", name)
	}
	return ParseCounters(strings.NewReader(text))
}
