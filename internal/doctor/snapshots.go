package doctor

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// snapshot reads the header of a snapshot.
func (r *reader) snapshot(d *manifest.Document) error {
	var header struct {
		KubernetesVersion string `json:"kubernetesVersion"`
		RBACReadable      bool   `json:"rbacReadable"`
		Missing           []struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
			Reason   string `json:"reason"`
		} `json:"missing"`
	}
	if err := d.Decode(&header); err != nil {
		return err
	}
	r.cluster.Snapshot, r.snapshots = true, true
	for _, m := range header.Missing {
		r.cluster.Missing = append(r.cluster.Missing, Missing{
			strings.TrimSuffix(m.Resource+"."+m.Group, "."), "the snapshot was taken without them: " + m.Reason,
			"take it with the right to read them",
		})
	}
	r.snapshotHasRBAC = r.snapshotHasRBAC || header.RBACReadable
	if minor, err := kubeversion.Parse(header.KubernetesVersion); err == nil {
		r.cluster.Version = minor
	}
	return nil
}
