package server

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// File is the path of a file in the server's folder.
func (s *Server) File(name string) string { return filepath.Join(s.dir, name) }

// Dir is the server's folder.
func (s *Server) Dir() string { return s.dir }

// ConfigFile is the path of the config file.
func (s *Server) ConfigFile() string { return s.File("config.yaml") }

// ConfigArgument is the argument that names the config file. No other process has it.
func (s *Server) ConfigArgument() string { return "--config=" + s.ConfigFile() }

// WriteConfig writes the config file.
func (s *Server) WriteConfig(text string) error { return writeFile(s.ConfigFile(), []byte(text)) }

// Kubeconfig is the path of the kubeconfig that WriteKubeconfig writes.
func (s *Server) Kubeconfig() string { return s.File("kubeconfig") }

// WriteKubeconfig writes a kubeconfig for the plane's kube-apiserver at a URL.
func (s *Server) WriteKubeconfig(url string, user *clientcmdapi.AuthInfo) error {
	return WriteKubeconfig(s.Kubeconfig(), url, s.plane.CAFile(), user)
}

// WriteKubeconfig writes a kubeconfig with one cluster and one user.
func WriteKubeconfig(path, url, caFile string, user *clientcmdapi.AuthInfo) error {
	const name = "e2e"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthority: caFile}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

// CopyFiles copies files into a folder under new names. Each is replaced atomically.
func CopyFiles(dir string, files map[string]string) error {
	for name, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// writeFile atomically replaces a file.
func writeFile(path string, content []byte) error {
	partial := path + ".new"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
