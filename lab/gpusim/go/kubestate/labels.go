package kubestate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

const wildcard = "*"

// A label of a series.
type label struct{ name, value string }

// A sample is one series of a family and its value.
type sample struct {
	labels []label
	value  float64
}

// labels makes label pairs of names and values in turn.
func labels(pairs ...string) []label {
	var made []label
	for index := 0; index+1 < len(pairs); index += 2 {
		made = append(made, label{pairs[index], pairs[index+1]})
	}
	return made
}

func (s sample) write(text *strings.Builder, family string) {
	text.WriteString(family)
	for index, pair := range s.labels {
		text.WriteByte("{,"[min(index, 1)])
		text.WriteString(pair.name + `="` + escaped.Replace(pair.value) + `"`)
	}
	text.WriteString("} " + strconv.FormatFloat(s.value, 'g', -1, 64) + "\n")
}

var (
	escaped    = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)
	humps      = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// sanitised makes a name of Prometheus of one of Kubernetes: nvidia.com/gpu -> nvidia_com_gpu.
func sanitised(name string) string { return notInNames.ReplaceAllString(name, "_") }

// told are the labels of a Kubernetes object that the list allows, as labels of a series.
func told(object map[string]string, allow []string) []label {
	var made []label
	seen := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !allows(allow, key) {
			continue
		}
		name := "label_" + strings.ToLower(humps.ReplaceAllString(sanitised(key), "${1}_${2}"))
		made = append(made, label{name, object[key]})
		seen[name]++
	}
	// Two keys that become one name are told apart by a number, all of them.
	counted := map[string]int{}
	for index, pair := range made {
		if seen[pair.name] > 1 {
			counted[pair.name]++
			made[index].name += "_conflict" + strconv.Itoa(counted[pair.name])
		}
	}
	return made
}

// allows: "*" counts as the first entry only, and inside a key it stands for anything, once.
func allows(allow []string, key string) bool {
	for index, pattern := range allow {
		before, after, partial := strings.Cut(pattern, wildcard)
		switch {
		case pattern == wildcard:
			if index == 0 {
				return true
			}
		case !partial:
			if pattern == key {
				return true
			}
		case strings.Contains(after, wildcard): // upstream refuses more than one
		case len(key) >= len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after):
			return true
		}
	}
	return false
}

// unitOf a resource as upstream tells it; "" for one that it leaves out.
func unitOf(name corev1.ResourceName) string {
	text := string(name)
	switch {
	case name == corev1.ResourceCPU:
		return "core"
	case name == corev1.ResourceMemory, name == corev1.ResourceStorage, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(text, corev1.ResourceHugePagesPrefix),
		strings.HasPrefix(text, corev1.ResourceAttachableVolumesPrefix):
		return "byte"
	case isExtended(text):
		return "integer"
	}
	return ""
}

// isExtended: of a domain of its own, as nvidia.com/gpu is.
func isExtended(name string) bool {
	prefix := corev1.DefaultResourceRequestsPrefix
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) {
		return false
	}
	return !strings.HasPrefix(name, prefix) && len(validation.IsQualifiedName(prefix+name)) == 0
}

// number keeps thousandths where they fit.
func number(quantity resource.Quantity) float64 {
	if quantity.Value() > resource.MaxMilliValue {
		return float64(quantity.Value())
	}
	return float64(quantity.MilliValue()) / 1000
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
