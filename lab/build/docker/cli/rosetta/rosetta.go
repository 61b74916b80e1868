// Package rosetta is a stand-in: Rosetta is a thing of macOS, and this is Linux.
package rosetta

import "runtime"

// Enabled tells whether Rosetta translates this program.
func Enabled() bool { return false }

// NativeArch is the machine's architecture.
func NativeArch() string { return runtime.GOARCH }
