// Package kubestate is the lab's SIMULATED stand-in for kube-state-metrics: the series that
// gpuboot's rules and dashboards read, with upstream's names, labels and meaning (release 2.20).
package kubestate

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Notice is what the stand-in says of itself wherever a person may look.
const Notice = "kube-state-metrics SIMULATED by the gpuboot lab: some of upstream's series only"

// Options are what the command line says.
type Options struct {
	Host, TelemetryHost string
	Port, TelemetryPort int
	// Resources in their plural form, as in "pods"; none means all.
	Resources []string
	// Namespaces whose objects are told of; none means all. Nodes and namespaces always are.
	Namespaces, NamespacesDenied []string
	// Labels of objects that become labels of series: resource -> keys, with "*" as in upstream.
	Labels map[string][]string
}

// What upstream knows as resources; the stand-in has series of a few of them.
var resources = strings.Fields(`
	certificatesigningrequests clusterrolebindings clusterroles configmaps cronjobs daemonsets
	deployments endpoints endpointslices horizontalpodautoscalers ingressclasses ingresses jobs
	leases limitranges mutatingadmissionpolicies mutatingadmissionpolicybindings
	mutatingwebhookconfigurations namespaces networkpolicies nodes persistentvolumeclaims
	persistentvolumes poddisruptionbudgets pods replicasets replicationcontrollers resourcequotas
	rolebindings roles secrets serviceaccounts services statefulsets storageclasses
	validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations
	volumeattachments`)

// Parse reads the command line. Flags that upstream has and the stand-in does not act on are
// errors, like unknown ones: what the chart asks for must not be dropped silently.
func Parse(arguments []string, output io.Writer) (Options, error) {
	options := Options{Labels: map[string][]string{}}
	flags := flag.NewFlagSet("sim-kube-state-metrics", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(output, Notice)
		flags.PrintDefaults()
	}
	flags.StringVar(&options.Host, "host", "::", "`address` of the metrics")
	flags.IntVar(&options.Port, "port", 8080, "port of the metrics")
	flags.StringVar(&options.TelemetryHost, "telemetry-host", "::", "`address` of its own metrics")
	flags.IntVar(&options.TelemetryPort, "telemetry-port", 8081, "port of its own metrics")
	list(flags, "resources", "comma-separated resources; all by default", &options.Resources)
	list(flags, "namespaces", "comma-separated namespaces; all by default", &options.Namespaces)
	list(flags, "namespaces-denylist", "comma-separated namespaces", &options.NamespacesDenied)
	flags.Func("metric-labels-allowlist", "`nodes=[key,…],pods=[…]`: labels to tell", options.allow)
	flags.Int("v", 0, "ignored: it logs little")
	if err := flags.Parse(arguments); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	return options, options.check()
}

func list(flags *flag.FlagSet, name, usage string, target *[]string) {
	flags.Func(name, usage, func(value string) error {
		for _, part := range strings.Split(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*target = append(*target, part)
			}
		}
		return nil
	})
}

func (options *Options) check() error {
	named := slices.Clone(options.Resources)
	for resource := range options.Labels {
		if resource != wildcard {
			named = append(named, resource)
		}
	}
	for _, resource := range named {
		if !slices.Contains(resources, resource) {
			return fmt.Errorf("resource %s does not exist", resource)
		}
	}
	return nil
}

// allow reads "nodes=[a,b],pods=[c]".
func (options *Options) allow(value string) error {
	for rest := value; rest != ""; {
		resource, after, found := strings.Cut(rest, "=[")
		keys, next, closed := strings.Cut(after, "]")
		if !found || !closed || resource == "" || (next != "" && next[0] != ',') {
			return fmt.Errorf("%q is not of the form resource=[key,…],…", value)
		}
		for _, key := range strings.Split(keys, ",") {
			if key = strings.TrimSpace(key); key != "" {
				name := strings.TrimSpace(resource)
				options.Labels[name] = append(options.Labels[name], key)
			}
		}
		rest = strings.TrimPrefix(next, ",")
	}
	return nil
}

// serves says whether series of a resource are wanted.
func (options *Options) serves(resource string) bool {
	return len(options.Resources) == 0 || slices.Contains(options.Resources, resource)
}

// allowed are the labels of a resource's objects that are told; "*" speaks for all resources.
func (options *Options) allowed(resource string) []string {
	return append(slices.Clone(options.Labels[wildcard]), options.Labels[resource]...)
}
