package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Layouts are the named ways to divide GPUs, as mig-parted's file has them.
type Layouts map[string][]LayoutPart

// LayoutPart says what becomes of some GPUs of a node.
type LayoutPart struct {
	Filter    words          `json:"device-filter"` // PCI ids, as 0x233010DE; none: all models
	Devices   words          `json:"devices"`       // "all", or indices
	Enabled   bool           `json:"mig-enabled"`
	Instances map[string]int `json:"mig-devices"` // profile: how many
}

// words are one word or a list, of text or numbers.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), "[]")
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.Trim(strings.TrimSpace(word), `"`); word != "" {
			*w = append(*w, word)
		}
	}
	return nil
}

// ReadLayouts reads mig-parted's file.
func ReadLayouts(path string) (Layouts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Version string  `json:"version"`
		Layouts Layouts `json:"mig-configs"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.Version != "v1" {
		return nil, fmt.Errorf("%s: unknown version %q", path, file.Version)
	}
	return file.Layouts, nil
}

func (p LayoutPart) concerns(gpu dividedGPU) bool {
	filtered := len(p.Filter) == 0 || slices.ContainsFunc(p.Filter, func(word string) bool {
		return strings.EqualFold(word, gpu.model)
	})
	return filtered && (slices.Contains(p.Devices, "all") ||
		slices.Contains(p.Devices, strconv.Itoa(gpu.index)))
}

// dividedGPU is a GPU as nvidia-smi shows it.
type dividedGPU struct {
	index     int
	model     string // PCI id, 0x233010DE
	capable   bool
	enabled   bool
	instances map[string]int
}

// division is what there is of a node's GPUs, and what of it is wanted.
type division struct {
	host   func(context.Context, ...string) (string, error)
	gpus   []dividedGPU
	wanted map[int]LayoutPart
}

var (
	listedGPU = regexp.MustCompile(`^GPU (\d+):`)
	listedMIG = regexp.MustCompile(`^  MIG (\S+) +Device +\d+:`)
)

func (d *division) plan(ctx context.Context, layouts Layouts, name string) error {
	parts, known := layouts[name]
	if !known {
		return fmt.Errorf("selected mig-config not present: %s", name)
	}
	if err := d.read(ctx); err != nil {
		return err
	}
	d.wanted = map[int]LayoutPart{}
	for _, part := range parts {
		for _, gpu := range d.gpus {
			if !part.concerns(gpu) {
				continue
			}
			if !gpu.capable && part.Enabled && !slices.Contains(part.Devices, "all") {
				return fmt.Errorf("cannot set MIG config on non MIG-capable GPU %d", gpu.index)
			}
			if gpu.capable {
				d.wanted[gpu.index] = part
			}
		}
	}
	return nil
}

func (d *division) read(ctx context.Context) error {
	asked, err := d.host(ctx, "nvidia-smi", "--query-gpu=index,pci.device_id,mig.mode.current",
		"--format=csv,noheader")
	if err != nil {
		return err
	}
	d.gpus = nil
	for line := range strings.Lines(asked) {
		fields := strings.Split(strings.TrimSpace(line), ", ")
		index, err := strconv.Atoi(fields[0])
		if err != nil || len(fields) != 3 {
			return fmt.Errorf("nvidia-smi says %q", line)
		}
		mode := fields[2]
		d.gpus = append(d.gpus, dividedGPU{
			index: index, model: fields[1], capable: mode == "Enabled" || mode == "Disabled",
			enabled: mode == "Enabled", instances: map[string]int{},
		})
	}
	listed, err := d.host(ctx, "nvidia-smi", "-L")
	if err != nil {
		return err
	}
	at := -1
	for line := range strings.Lines(listed) {
		if found := listedGPU.FindStringSubmatch(line); found != nil {
			at++
		} else if found := listedMIG.FindStringSubmatch(line); found != nil && at < len(d.gpus) {
			d.gpus[at].instances[found[1]]++
		}
	}
	return nil
}

func (d *division) applied() bool {
	return !slices.ContainsFunc(d.gpus, func(gpu dividedGPU) bool {
		return d.otherMode(gpu) || d.otherInstances(gpu)
	})
}

func (d *division) changesMode() bool { return slices.ContainsFunc(d.gpus, d.otherMode) }

func (d *division) otherMode(gpu dividedGPU) bool {
	part, concerned := d.wanted[gpu.index]
	return concerned && part.Enabled != gpu.enabled
}

func (d *division) otherInstances(gpu dividedGPU) bool {
	part, concerned := d.wanted[gpu.index]
	return concerned && !maps.Equal(part.Instances, gpu.instances)
}

func (d *division) apply(ctx context.Context) error {
	for _, gpu := range d.gpus {
		for _, command := range d.commands(gpu) {
			_, err := d.host(ctx, append([]string{"nvidia-smi"}, command...)...)
			if err != nil && !(nothingToEnd(command) && strings.Contains(err.Error(), notFound)) {
				return err
			}
		}
	}
	if err := d.read(ctx); err != nil {
		return err
	}
	if !d.applied() {
		return fmt.Errorf("the GPUs are not as asked: %v", d.gpus)
	}
	return nil
}

// How nvidia-smi ends where there is no instance to destroy.
const notFound = "exit status 6"

func nothingToEnd(command []string) bool {
	return slices.Contains([]string{"-dci", "-dgi"}, command[len(command)-1])
}

// commands divide one GPU: its instances go, its mode changes, and others come, the largest first.
func (d *division) commands(gpu dividedGPU) [][]string {
	var found [][]string
	index, part := strconv.Itoa(gpu.index), d.wanted[gpu.index]
	// GPU instances without compute instances, which are not listed, go as well
	if gpu.enabled && (d.otherInstances(gpu) || d.otherMode(gpu)) {
		found = append(found, []string{"mig", "-i", index, "-dci"}, []string{"mig", "-i", index, "-dgi"})
	}
	if d.otherMode(gpu) {
		found = append(found, []string{"-i", index, "-mig", map[bool]string{true: "1", false: "0"}[part.Enabled]})
	}
	var profiles []string
	for profile, count := range part.Instances {
		for range count {
			profiles = append(profiles, profile)
		}
	}
	if len(profiles) > 0 && d.otherInstances(gpu) {
		slices.SortFunc(profiles, func(a, b string) int { return strings.Compare(b, a) })
		found = append(found, []string{"mig", "-i", index, "-cgi", strings.Join(profiles, ","), "-C"})
	}
	return found
}

var listedProfile = regexp.MustCompile(`^\|\s+(\d+)\s+MIG (\S+)\s+\d+\s+\d+/(\d+)\s`)

// Generated are the layouts that the MIG manager makes itself where it gets no file: no MIG, each
// profile as often as it fits, and "all-balanced" of cards with seven compute slices.
func Generated(
	ctx context.Context, host func(context.Context, ...string) (string, error),
) (Layouts, error) {
	found := Layouts{migDisabled: {{Devices: words{"all"}}}}
	listed, err := host(ctx, "nvidia-smi", "mig", "-lgip")
	if err != nil {
		return found, nil // no GPU can be divided
	}
	least := map[string]string{} // first figure of a profile: the smallest that has it
	for line := range strings.Lines(listed) {
		fields := listedProfile.FindStringSubmatch(line)
		if fields == nil || fields[1] != "0" {
			continue // the GPUs of a machine of the lab are of one model
		}
		profile := fields[2]
		count, err := strconv.Atoi(fields[3])
		if err != nil {
			return nil, err
		}
		name := "all-" + strings.ReplaceAll(profile, "+", ".")
		found[name] = []LayoutPart{allOf(map[string]int{profile: count})}
		compute, _, _ := strings.Cut(profile, "g.")
		if _, known := least[compute]; !known {
			least[compute] = profile
		}
	}
	if least["7"] != "" {
		found["all-balanced"] = []LayoutPart{
			allOf(map[string]int{least["1"]: 2, least["2"]: 1, least["3"]: 1}),
		}
	}
	return found, nil
}

func allOf(instances map[string]int) LayoutPart {
	return LayoutPart{Devices: words{"all"}, Enabled: true, Instances: instances}
}
