package render

import (
	"time"

	"github.com/node-authorizer/node-authorizer/internal/output/junit"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

// Metadata says how a document was made, so that it can be handed on without its makers.
type Metadata struct {
	// Date is when the document was made, in UTC, as in RFC 3339.
	Date string `json:"date"`
	// Version is the version of node-authorizer that made it.
	Version string `json:"version"`
	// CommandLine is the command line, quoted for a shell. REDACTED stands for each credential in it.
	CommandLine string `json:"commandLine"`
	// Options are START and the flags that change the answer, for commands whose documents are compared; absent for others.
	Options map[string]string `json:"options,omitempty"`
	// Cluster is the cluster or the files that were read; absent if none were.
	Cluster *Cluster `json:"cluster,omitempty"`
	// NotRead is what could not be read, or what files lack, and the result may depend on.
	NotRead []NotRead `json:"notRead,omitempty"`
}

// Cluster is where a result comes from.
type Cluster struct {
	// Origin says in words what was read: a cluster, or which files.
	Origin string `json:"origin"`
	// UID is the UID of the service account kube-system/default, which is another one in each cluster; absent if it was not read.
	UID string `json:"uid,omitempty"`
	// Context is the context of the kubeconfig; absent for files, and inside a pod.
	Context string `json:"context,omitempty"`
	// ServerVersion is the version that the API server or the snapshot states, such as v1.36.3; absent if that is unknown.
	ServerVersion string `json:"serverVersion,omitempty"`
	// Objects counts what was read; absent if only a part was, as much as the answer needed.
	Objects *ObjectCounts `json:"objects,omitempty"`
}

// ObjectCounts counts the objects of a cluster. What could not be read is not counted, see NotRead.
type ObjectCounts struct {
	// Nodes counts nodes, also those that only other objects name.
	Nodes int `json:"nodes"`
	// Pods counts pods.
	Pods int `json:"pods"`
	// ServiceAccounts counts service accounts.
	ServiceAccounts int `json:"serviceAccounts"`
}

// NotRead is a resource that could not be read, or an object that files lack.
type NotRead struct {
	// Resource is a name as in kubectl; empty if the reason is about everything.
	Resource string `json:"resource"`
	// Reason is the reason in one line.
	Reason string `json:"reason"`
}

// NewMetadata returns the metadata of documents that are made now.
func NewMetadata(now time.Time, version, commandLine string) *Metadata {
	return &Metadata{Date: now.UTC().Format(time.RFC3339), Version: version, CommandLine: commandLine}
}

// inLog puts the metadata into the invocation of each run.
func (m *Metadata) inLog(log any) any {
	l, ok := log.(sarif.Log)
	if !ok || m == nil {
		return log
	}
	for i := range l.Runs {
		invocation := &l.Runs[i].Invocations[0]
		invocation.CommandLine, invocation.StartTimeUTC = m.CommandLine, m.Date
		invocation.Properties = map[string]any{}
		if m.Cluster != nil {
			invocation.Properties["cluster"] = m.Cluster
		}
		if len(m.NotRead) > 0 {
			invocation.Properties["notRead"] = m.NotRead
		}
	}
	return l
}

// inSuite puts the metadata into the properties of the suite.
func (m *Metadata) inSuite(suites any) any {
	s, ok := suites.(junit.Suites)
	if !ok || m == nil {
		return suites
	}
	s.Suite.Timestamp = m.Date
	s.Suite.Property("version", m.Version)
	s.Suite.Property("commandLine", m.CommandLine)
	if c := m.Cluster; c != nil {
		s.Suite.Property("cluster", c.Origin)
		s.Suite.Property("context", c.Context)
		s.Suite.Property("serverVersion", c.ServerVersion)
	}
	for _, n := range m.NotRead {
		s.Suite.Property("notRead", n.Resource+": "+n.Reason)
	}
	return s
}
