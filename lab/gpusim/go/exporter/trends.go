package exporter

import "time"

// Over what time DCGM's health watches look at counters.
const trendWindow = time.Minute

type reading struct {
	at    time.Time
	value uint64
}

// Trends remembers counters for as long as the health watches look back. The zero value is ready.
type Trends struct{ readings map[[2]string][]reading }

// Gain records a counter of a GPU and tells what it gained in the last minute, or since the first
// reading; 0 when it began again.
func (t *Trends) Gain(uuid, name string, value uint64, now time.Time) uint64 {
	if t.readings == nil {
		t.readings = map[[2]string][]reading{}
	}
	key := [2]string{uuid, name}
	kept := append(t.readings[key], reading{now, value})
	for len(kept) > 1 && now.Sub(kept[1].at) >= trendWindow {
		kept = kept[1:]
	}
	t.readings[key] = kept
	if value < kept[0].value {
		t.readings[key] = kept[len(kept)-1:]
		return 0
	}
	return value - kept[0].value
}
