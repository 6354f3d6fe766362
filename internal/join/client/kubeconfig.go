package client

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// The names in the kubeconfig. kops' node-authorizer used the same.
const (
	clusterName = "cluster"
	contextName = "bootstrap-context"
)

// kubeconfig returns the content for kubelet's --bootstrap-kubeconfig or --kubeconfig. It contains the
// authorities, so that no other file is needed for them.
func kubeconfig(server string, authorities []byte, user *api.AuthInfo) ([]byte, error) {
	config := api.NewConfig()
	config.Clusters[clusterName] = &api.Cluster{Server: server, CertificateAuthorityData: authorities}
	config.AuthInfos[contextName] = user
	config.Contexts[contextName] = &api.Context{Cluster: clusterName, AuthInfo: contextName}
	config.CurrentContext = contextName
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the bootstrap kubeconfig: %w", err)
	}
	return text, nil
}
