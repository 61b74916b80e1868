package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/coreos/go-systemd/v22/dbus"
)

// Unit is what a host's systemd says of a service.
type Unit struct {
	Found, Active, Enabled bool
	Broken                 bool // its file could not be read
	OneShot                bool
}

// Units are the services of a host.
type Units interface {
	Unit(ctx context.Context, name string) (Unit, error)
	Stop(ctx context.Context, name string) error
	Start(ctx context.Context, name string) error
	Close()
}

// HostUnits asks the host's systemd over the D-Bus of the host's root, as the real MIG manager does:
// systemd's own socket answers nobody in another PID namespace.
func HostUnits(ctx context.Context) (Units, error) {
	address := "unix:path=" + hostRoot + "/run/dbus/system_bus_socket"
	if err := os.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address); err != nil {
		return nil, err
	}
	bus, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("systemd of the host: %w", err)
	}
	return hostUnits{bus}, nil
}

type hostUnits struct{ bus *dbus.Conn }

func (h hostUnits) Close() { h.bus.Close() }

func (h hostUnits) Unit(ctx context.Context, name string) (Unit, error) {
	found, err := h.bus.ListUnitsByNamesContext(ctx, []string{name})
	if err != nil {
		return Unit{}, err
	}
	if found[0].LoadState == "not-found" {
		return Unit{}, nil
	}
	known, err := h.bus.GetAllPropertiesContext(ctx, name)
	return Unit{
		Found: true, Active: known["ActiveState"] == "active",
		Enabled: known["UnitFileState"] == "enabled", Broken: known["LoadState"] == "error",
		OneShot: known["Type"] == "oneshot",
	}, err
}

func (h hostUnits) Stop(ctx context.Context, name string) error {
	return awaited(ctx, "stop", name, h.bus.StopUnitContext)
}

func (h hostUnits) Start(ctx context.Context, name string) error {
	return awaited(ctx, "start", name, h.bus.StartUnitContext)
}

type unitJob func(context.Context, string, string, chan<- string) (int, error)

func awaited(ctx context.Context, what, name string, job unitJob) error {
	ended := make(chan string, 1)
	if _, err := job(ctx, name, "replace", ended); err != nil {
		return fmt.Errorf("%s %s: %w", what, name, err)
	}
	select {
	case result := <-ended:
		if result != "done" {
			return fmt.Errorf("%s %s: %s", what, name, result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopUnits returns the services to be started afterwards, in that order: those that it stopped,
// and by the rules of mig-parted v0.15 (internal/systemd) also enabled ones that did not run.
func stopUnits(ctx context.Context, units Units, services []string) ([]string, error) {
	var again []string
	for _, service := range services {
		unit, err := units.Unit(ctx, service)
		switch {
		case err != nil:
			slog.Warn("skipping", "service", service, "error", err)
			continue
		case unit.Active:
			slog.Info("stopping", "service", service)
			if err := units.Stop(ctx, service); err != nil {
				return again, err
			}
		case !unit.Found, !unit.Broken && (!unit.Enabled || unit.OneShot):
			continue
		}
		again = slices.Insert(again, 0, service)
	}
	return again, nil
}
