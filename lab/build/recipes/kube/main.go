// The programs of Kubernetes' control plane and kube-proxy in one: it is whichever its name says.
// Upstream ships one program each; they share nearly all their code, so one is linked faster, and
// one image layer serves four images.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "time/tzdata" // as upstream's mains: time zones of CronJobs

	_ "k8s.io/component-base/logs/json/register"          // as upstream's mains: JSON log format
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as upstream's mains: client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // as upstream's mains: version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	program, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: call this by the name of a control-plane program\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(program()))
}
