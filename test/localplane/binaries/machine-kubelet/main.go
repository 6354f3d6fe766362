// Command machine-kubelet is a hollow kubelet like that of kubemark, with the certificate
// management that kubemark omits. It bootstraps its client certificate in the background
// and renews it, requests a serving certificate (kubernetes.io/kubelet-serving) for the
// addresses of its Node, serves its port with it, and authenticates and authorizes
// callers of that port with the API server.
//
// It runs as in a cloud: a cloud controller sets the addresses of the Node, and until
// then there is no serving certificate.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	fakeremote "k8s.io/cri-client/pkg/fake"
	"k8s.io/klog/v2"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

// statusPeriod is how often the kubelet reads the addresses of its Node for its serving
// certificate.
const statusPeriod = 2 * time.Second

// machine has the values of the flags.
type machine struct {
	name, address                               string
	port                                        int
	kubeconfig, bootstrapKubeconfig             string
	certificates, clientAuthorities, providerID string
	labels                                      map[string]string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m := machine{labels: map[string]string{}}
	m.addFlags(flag.CommandLine)
	flag.Parse()
	if err := m.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "machine-kubelet:", err)
		os.Exit(1)
	}
}

func (m *machine) addFlags(flags *flag.FlagSet) {
	klog.InitFlags(flags)
	flags.StringVar(&m.name, "name", "", "name of the node")
	flags.StringVar(&m.address, "address", "127.0.0.1", "address on which the kubelet serves")
	flags.IntVar(&m.port, "kubelet-port", 10250, "port on which the kubelet serves")
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "kubeconfig that the kubelet writes when it bootstraps, or has from the start")
	flags.StringVar(&m.bootstrapKubeconfig, "bootstrap-kubeconfig", "", "kubeconfig that the kubelet bootstraps with; empty if it does not")
	flags.StringVar(&m.certificates, "cert-dir", "", "folder of the kubelet's certificates")
	flags.StringVar(&m.clientAuthorities, "client-ca-file", "", "authorities whose certificates may use the kubelet's port")
	flags.StringVar(&m.providerID, "provider-id", "", "what a cloud's controller calls the machine")
	labels := cliflag.ConfigurationMap(m.labels)
	flags.Var(&labels, "node-labels", "labels of the node, as key=value, separated by commas")
}

func (m *machine) run(ctx context.Context) error {
	endpoint, err := fakeremote.GenerateEndpoint()
	if err != nil {
		return fmt.Errorf("choose a socket for the container runtime: %w", err)
	}
	containers := fakeremote.NewFakeRemoteRuntime()
	// The kubelet rejects images without a size.
	containers.ImageService.SetFakeImageSize(1)
	if err := containers.Start(endpoint); err != nil {
		return fmt.Errorf("start the container runtime: %w", err)
	}
	defer containers.Stop()

	server := m.server(endpoint)
	dependencies := kubemark.NewHollowKubelet(&server.KubeletFlags, &server.KubeletConfiguration, nil, nil,
		&cadvisortest.Fake{NodeName: m.name}, containers.ImageService, containers.RuntimeService,
		cm.NewStubContainerManager()).KubeletDeps
	// Without clients the kubelet makes its own, with the certificate that it renews.
	dependencies.KubeClient, dependencies.HeartbeatClient = nil, nil
	if dependencies.TLSOptions, err = kubelet.InitializeTLS(ctx, &server.KubeletFlags, &server.KubeletConfiguration); err != nil {
		return fmt.Errorf("prepare the kubelet's serving: %w", err)
	}
	return kubelet.Run(ctx, server, dependencies, utilfeature.DefaultFeatureGate)
}

// server returns kubemark's kubelet with the parts that kubemark omits.
func (m *machine) server(endpoint string) *options.KubeletServer {
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: m.name, KubeletPort: m.port, MaxPods: 110, NodeLabels: m.labels,
	})
	flags.KubeConfig, flags.BootstrapKubeconfig = m.kubeconfig, m.bootstrapKubeconfig
	flags.CertDirectory = m.certificates
	flags.CloudProvider = "external"
	config.ProviderID = m.providerID
	config.Address = m.address
	config.HealthzPort = 0
	config.ContainerRuntimeEndpoint, config.ImageServiceEndpoint = endpoint, endpoint
	// No process runs in a cgroup.
	config.EnforceNodeAllocatable, config.FailCgroupV1 = nil, false
	// A kubelet with another credential than a certificate renews no certificate.
	config.RotateCertificates, config.ServerTLSBootstrap = m.bootstrapKubeconfig != "", true
	config.Authentication.X509.ClientCAFile = m.clientAuthorities
	config.NodeStatusUpdateFrequency.Duration = statusPeriod
	// A folder of static pods needs one of the user's 128 inotify instances, which are
	// too few for many machines.
	config.StaticPodPath = ""
	return &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}
}
