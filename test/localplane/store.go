package localplane

import (
	"context"
	"fmt"
	"os"
)

// SaveStore copies the data of etcd to a new folder. etcd is stopped meanwhile.
func (p *Plane) SaveStore(ctx context.Context, dir string) error {
	if err := p.StopComponent(Etcd); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(p.layout.etcdData())); err != nil {
		return fmt.Errorf("copy the store of the control plane: %w", err)
	}
	return p.StartComponent(ctx, Etcd)
}

// RestoreStore restores the control plane from a copy by [Plane.SaveStore], like a
// restore from a backup: it stops kube-apiserver and etcd, and starts them again.
func (p *Plane) RestoreStore(ctx context.Context, dir string) error {
	for _, c := range []Component{APIServer, Etcd} {
		if err := p.StopComponent(c); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(p.layout.etcdData()); err != nil {
		return fmt.Errorf("remove the store of the control plane: %w", err)
	}
	if err := os.CopyFS(p.layout.etcdData(), os.DirFS(dir)); err != nil {
		return fmt.Errorf("restore the store of the control plane: %w", err)
	}
	if err := os.Chmod(p.layout.etcdData(), 0o700); err != nil { // etcd requires this mode
		return fmt.Errorf("restore the store of the control plane: %w", err)
	}
	for _, c := range []Component{Etcd, APIServer} {
		if err := p.StartComponent(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
