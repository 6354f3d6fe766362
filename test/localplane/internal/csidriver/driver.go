// Package csidriver is the node part of a fake storage driver: every volume can be staged
// and published, and is an empty folder. With it, pods with CSI volumes run on hollow
// nodes.
package csidriver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Server serves one kubelet on two sockets below its root folder: one for plugin
// registration, one for the driver itself.
type Server struct {
	servers []*grpc.Server
}

// Serve starts serving a kubelet with the given root folder.
func Serve(root, driver, node string) (*Server, error) {
	endpoint := filepath.Join(root, "plugins", driver, "csi.sock")
	s := &Server{}
	err := s.listen(endpoint, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, identity{driver: driver})
		csi.RegisterNodeServer(server, nodeService{node: node})
	})
	if err == nil {
		err = s.listen(filepath.Join(root, "plugins_registry", driver+"-reg.sock"), func(server *grpc.Server) {
			registration.RegisterRegistrationServer(server, registrar{driver: driver, endpoint: endpoint})
		})
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("serve the storage driver %s: %w", driver, err)
	}
	return s, nil
}

func (s *Server) listen(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	s.servers = append(s.servers, server)
	// Serve returns when the server is stopped.
	go func() { _ = server.Serve(listener) }()
	return nil
}

// Stop stops both servers and removes their sockets.
func (s *Server) Stop() {
	for _, server := range s.servers {
		server.Stop()
	}
}

type registrar struct {
	registration.UnsafeRegistrationServer
	driver, endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.driver,
		Endpoint:          r.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r registrar) NotifyRegistrationStatus(context.Context,
	*registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

type identity struct {
	csi.UnimplementedIdentityServer
	driver string
}

func (i identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.driver, VendorVersion: "1.0.0"}, nil
}

func (i identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

type nodeService struct {
	csi.UnimplementedNodeServer
	node string
}

func (n nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.node}, nil
}

// NodeGetCapabilities reports staging. Without it, a kubelet does not read the secret for
// staging.
func (n nodeService) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	staging := &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
		Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	}}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{staging}}, nil
}

func (n nodeService) NodeStageVolume(context.Context, *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, nil
}

func (n nodeService) NodeUnstageVolume(context.Context, *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (n nodeService) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := os.MkdirAll(request.GetTargetPath(), 0o750); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n nodeService) NodeUnpublishVolume(_ context.Context,
	request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := os.Remove(request.GetTargetPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
