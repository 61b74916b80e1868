package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// Nodes, DaemonSets and policies, as the API server names them.
var (
	nodeResource      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	daemonSetResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	policyResource    = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}
)

const (
	policyName   = "cluster-policy"
	managedLabel = "app.kubernetes.io/managed-by"
	managedValue = "gpu-operator"
	period       = 30 * time.Second
	// Pass is how long the real operator's look at all its operands takes at least: it writes the
	// ClusterPolicy's state at the end of it, so a changed policy goes on being "ready" as long.
	Pass = 5 * time.Second
)

// Controller keeps node labels and the ClusterPolicy's status right.
type Controller struct {
	Client    dynamic.Interface
	Namespace string // where the operands run
	Metrics   *Metrics
	Pass      time.Duration // from the look at the nodes to the state

	mutex   sync.Mutex
	synced  bool
	nodes   cache.GenericLister
	daemons cache.GenericLister
}

// Synced says whether the controller has seen the cluster.
func (c *Controller) Synced() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.synced
}

// Run watches and reconciles until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	poke := func() {
		select {
		case changed <- struct{}{}:
		default: // a run is due already
		}
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c.Client, 0)
	for _, resource := range []schema.GroupVersionResource{nodeResource, daemonSetResource, policyResource} {
		_, err := factory.ForResource(resource).Informer().AddEventHandler(
			cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { poke() },
				UpdateFunc: func(any, any) { poke() },
				DeleteFunc: func(any) { poke() },
			})
		if err != nil {
			return err
		}
	}
	c.nodes = factory.ForResource(nodeResource).Lister()
	c.daemons = factory.ForResource(daemonSetResource).Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	c.mutex.Lock()
	c.synced = true
	c.mutex.Unlock()
	c.loop(ctx, changed)
	return nil
}

func (c *Controller) loop(ctx context.Context, changed <-chan struct{}) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			time.Sleep(200 * time.Millisecond) // changes come in bursts
		case <-ticker.C:
		}
		if err := c.reconcile(ctx); err != nil {
			slog.Error("reconciliation failed", "error", err)
			c.Metrics.Failed()
		}
	}
}

func (c *Controller) reconcile(ctx context.Context) error {
	manager, layout, err := c.migManager(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.labelNodes(ctx, manager, layout)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(c.Pass):
	}
	operands, err := c.operands()
	if err != nil {
		return err
	}
	state := Judge(nodes, operands)
	c.Metrics.Reconciled(nodes, state)
	return c.writeState(ctx, state)
}

// labelNodes puts every node's labels right and returns what they were before.
func (c *Controller) labelNodes(
	ctx context.Context, manager bool, layout string,
) ([]map[string]string, error) {
	objects, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var all []map[string]string
	for _, object := range objects {
		node := object.(*unstructured.Unstructured)
		all = append(all, node.GetLabels())
		changes := LabelChanges(node.GetLabels())
		if config := MIGConfig(node.GetLabels(), manager, layout); config != "" {
			changes[migConfig] = &config
		}
		if len(changes) == 0 {
			continue
		}
		slog.Info("labelling node", "node", node.GetName(), "changes", len(changes))
		if err := setLabels(ctx, c.Client, node.GetName(), changes); err != nil {
			return nil, fmt.Errorf("node %s: %w", node.GetName(), err)
		}
	}
	return all, nil
}

// setLabels changes labels of a node and leaves the others; one without a value is taken away.
func setLabels[V string | *string](
	ctx context.Context, client dynamic.Interface, node string, labels map[string]V,
) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	_, err = client.Resource(nodeResource).Patch(
		ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// migManager says whether the policy has a MIG manager, and its default layout.
func (c *Controller) migManager(ctx context.Context) (bool, string, error) {
	policies, err := c.Client.Resource(policyResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, "", err
	}
	for _, policy := range policies.Items {
		if policy.GetName() != policyName {
			continue
		}
		manager, _, _ := unstructured.NestedMap(policy.Object, "spec", "migManager")
		enabled, _, _ := unstructured.NestedBool(manager, "enabled")
		layout, _, _ := unstructured.NestedString(manager, "config", "default")
		return enabled, layout, nil
	}
	return false, "", nil
}

func (c *Controller) operands() ([]*appsv1.DaemonSet, error) {
	objects, err := c.daemons.ByNamespace(c.Namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var operands []*appsv1.DaemonSet
	for _, object := range objects {
		var operand appsv1.DaemonSet
		content := object.(*unstructured.Unstructured).UnstructuredContent()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &operand); err != nil {
			return nil, err
		}
		// by its pods' label: Helm, which makes the lab's operands, puts its own on the DaemonSet
		if operand.Spec.Template.Labels[managedLabel] == managedValue {
			operands = append(operands, &operand)
		}
	}
	return operands, nil
}

// writeState changes the ClusterPolicy's status where it differs. A cluster without the policy has
// no status to write.
func (c *Controller) writeState(ctx context.Context, state State) error {
	policies, err := c.Client.Resource(policyResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, policy := range policies.Items {
		status := "ignored" // the real operator looks at one policy only
		if policy.GetName() == policyName {
			status = state.State
		}
		current, _, _ := unstructured.NestedString(policy.Object, "status", "state")
		if current == status && readyMessage(policy) == state.Message {
			continue
		}
		slog.Info("ClusterPolicy", "name", policy.GetName(), "state", status, "message", state.Message)
		patch, err := json.Marshal(map[string]any{"status": c.status(status, state)})
		if err != nil {
			return err
		}
		_, err = c.Client.Resource(policyResource).Patch(
			ctx, policy.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("ClusterPolicy %s: %w", policy.GetName(), err)
		}
	}
	return nil
}

func (c *Controller) status(status string, state State) map[string]any {
	ready := metav1.ConditionFalse
	if status == "ready" {
		ready = metav1.ConditionTrue
	}
	condition := metav1.Condition{
		Type: "Ready", Status: ready, Reason: state.Reason, Message: state.Message,
		LastTransitionTime: metav1.Now(),
	}
	return map[string]any{
		"state": status, "namespace": c.Namespace, "conditions": []metav1.Condition{condition},
	}
}

func readyMessage(policy unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(policy.Object, "status", "conditions")
	for _, item := range conditions {
		if condition, ok := item.(map[string]any); ok && condition["type"] == "Ready" {
			message, _ := condition["message"].(string)
			return message
		}
	}
	return ""
}
