package kubestate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A Collector watches the cluster and tells its state.
type Collector struct {
	options   Options
	factories []informers.SharedInformerFactory
	// resource -> what watches it: one for the cluster, or one for each namespace
	watched map[string][]cache.SharedIndexInformer
}

// Resources by how they are watched.
var watches = map[string]struct {
	namespaced bool
	of         func(informers.SharedInformerFactory) cache.SharedIndexInformer
}{
	"configmaps": {true, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().ConfigMaps().Informer()
	}},
	"daemonsets": {true, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Apps().V1().DaemonSets().Informer()
	}},
	"namespaces": {false, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Namespaces().Informer()
	}},
	"nodes": {false, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Nodes().Informer()
	}},
	"pods": {true, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Pods().Informer()
	}},
	"resourcequotas": {true, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().ResourceQuotas().Informer()
	}},
}

// NewCollector makes a collector of what the options ask for; Run starts it.
func NewCollector(client kubernetes.Interface, options Options) *Collector {
	all := informers.NewSharedInformerFactory(client, 0)
	narrow := []informers.SharedInformerFactory{all}
	if len(options.Namespaces) > 0 {
		narrow = nil
		for _, namespace := range options.Namespaces {
			narrow = append(narrow, informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace)))
		}
	}
	collector := &Collector{
		options:   options,
		factories: append([]informers.SharedInformerFactory{all}, narrow...),
		watched:   map[string][]cache.SharedIndexInformer{},
	}
	for resource, watch := range watches {
		if !options.serves(resource) {
			continue
		}
		factories := []informers.SharedInformerFactory{all}
		if watch.namespaced {
			factories = narrow
		}
		for _, factory := range factories {
			collector.watched[resource] = append(collector.watched[resource], watch.of(factory))
		}
	}
	return collector
}

// Run watches until the context ends.
func (c *Collector) Run(ctx context.Context) {
	for _, factory := range c.factories {
		factory.Start(ctx.Done())
	}
	<-ctx.Done()
	for _, factory := range c.factories {
		factory.Shutdown()
	}
}

// Synced says whether everything that is there has been seen once.
func (c *Collector) Synced() bool {
	for _, informers := range c.watched {
		for _, informer := range informers {
			if !informer.HasSynced() {
				return false
			}
		}
	}
	return true
}

// Text is the state in Prometheus' text format, families and objects in a fixed order.
func (c *Collector) Text() string {
	var text strings.Builder
	for _, family := range families {
		if !c.options.serves(family.resource) {
			continue
		}
		text.WriteString("# HELP " + family.name + " [STABLE] " + family.help + "\n")
		text.WriteString("# TYPE " + family.name + " gauge\n")
		allow := c.options.allowed(family.resource)
		for _, object := range c.objects(family.resource) {
			for _, sample := range family.of(object, allow) {
				sample.write(&text, family.name)
			}
		}
	}
	return text.String()
}

// objects of a resource, by namespace and name, without those of denied namespaces.
func (c *Collector) objects(resource string) []any {
	var found []any
	for _, informer := range c.watched[resource] {
		for _, object := range informer.GetStore().List() {
			if !slices.Contains(c.options.NamespacesDenied, namespaceOf(object)) {
				found = append(found, object)
			}
		}
	}
	slices.SortFunc(found, func(a, b any) int {
		return cmp.Or(cmp.Compare(namespaceOf(a), namespaceOf(b)), cmp.Compare(nameOf(a), nameOf(b)))
	})
	return found
}

func namespaceOf(object any) string { return accessor(object).GetNamespace() }

func nameOf(object any) string { return accessor(object).GetName() }

func accessor(object any) metav1.Object {
	found, err := meta.Accessor(object)
	if err != nil { // an informer's store holds API objects only
		panic(err)
	}
	return found
}
