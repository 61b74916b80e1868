package exporter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// How long what the API server said of this node's pods is believed.
const metadataAge = 10 * time.Second

// Metadata knows labels and UIDs of the pods on this node, from the API server. The real exporter
// watches pods; this one lists them when a scrape finds its list old.
type Metadata struct {
	allowed []*regexp.Regexp
	labels  bool
	list    func(ctx context.Context) (map[string]Pod, error) // by "namespace/name"
	mutex   sync.Mutex
	known   map[string]Pod
	read    time.Time
}

var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// NewMetadata asks the API server of the cluster in which the exporter runs. `labels`: whether pod
// labels are wanted; `patterns`: regular expressions of their names, none for every label. As in
// the real exporter a pattern that is none is left out.
func NewMetadata(labels bool, patterns []string) (*Metadata, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadata := &Metadata{labels: labels, list: func(ctx context.Context) (map[string]Pod, error) {
		return listPods(ctx, client)
	}}
	metadata.allow(patterns)
	return metadata, nil
}

func (m *Metadata) allow(patterns []string) {
	for _, pattern := range patterns {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			slog.Warn("Skipping a pod label pattern", "pattern", pattern, "error", err)
			continue
		}
		m.allowed = append(m.allowed, compiled)
	}
}

func listPods(ctx context.Context, client dynamic.Interface) (map[string]Pod, error) {
	options := metav1.ListOptions{}
	if node := os.Getenv("NODE_NAME"); node != "" {
		options.FieldSelector = "spec.nodeName=" + node
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
		List(ctx, options)
	if err != nil {
		return nil, err
	}
	pods := map[string]Pod{}
	for _, pod := range list.Items {
		pods[pod.GetNamespace()+"/"+pod.GetName()] = Pod{
			UID: string(pod.GetUID()), Labels: pod.GetLabels(),
		}
	}
	return pods, nil
}

// Add completes the holders by what the API server knows of them. An error leaves the rest as known.
func (m *Metadata) Add(ctx context.Context, holders Holders) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var failure error
	if time.Since(m.read) > metadataAge {
		pods, err := m.list(ctx)
		if err != nil {
			failure = fmt.Errorf("pods of this node: %w", err)
		} else {
			m.known, m.read = pods, time.Now()
		}
	}
	for _, pods := range holders {
		for i := range pods {
			known := m.known[pods[i].Namespace+"/"+pods[i].Name]
			pods[i].UID = known.UID
			if m.labels {
				pods[i].Labels = m.filter(known.Labels)
			}
		}
	}
	return failure
}

// The allowed labels, with names that Prometheus accepts.
func (m *Metadata) filter(labels map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range labels {
		if m.allows(name) {
			kept[notInLabels.ReplaceAllString(name, "_")] = value
		}
	}
	return kept
}

func (m *Metadata) allows(name string) bool {
	for _, pattern := range m.allowed {
		if pattern.MatchString(name) {
			return true
		}
	}
	return len(m.allowed) == 0
}

// SplitList reads an option that is a list separated by commas; empty is no list.
func SplitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
