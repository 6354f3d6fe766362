package client

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// The names in the kubeconfig are those that kops' node-authorizer gave.
const (
	clusterName = "cluster"
	contextName = "bootstrap-context"
)

// kubeconfig is that of a kubelet's --bootstrap-kubeconfig. It needs no other
// file: the authorities are in it.
func kubeconfig(server string, authorities []byte, granted token) ([]byte, error) {
	config := api.NewConfig()
	config.Clusters[clusterName] = &api.Cluster{Server: server, CertificateAuthorityData: authorities}
	config.AuthInfos[contextName] = &api.AuthInfo{Token: string(granted)}
	config.Contexts[contextName] = &api.Context{Cluster: clusterName, AuthInfo: contextName}
	config.CurrentContext = contextName
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the bootstrap kubeconfig: %w", err)
	}
	return text, nil
}
