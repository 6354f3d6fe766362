package main

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/doctor"
)

func (b *bench) doctorLive(s *section, l doctorCluster) (err error) {
	c, err := b.newServingCluster(layout{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.plane.Stop()) }()
	config := c.plane.AdminConfig()
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	b.log("doctor: creating %d nodes and their certificate requests", l.nodes)
	if err := l.admit(b.ctx, client); err != nil {
		return err
	}
	used, err := b.program("doctor", "-o", "json", "--kubeconfig", c.plane.AdminKubeconfig())
	if err != nil {
		return err
	}
	runs := table{
		caption: fmt.Sprintf("**The program on a live cluster, %s nodes.**", thousands(float64(l.nodes))),
		header:  []string{"time", "processor time", "peak memory"},
	}
	runs.add(fmt.Sprintf("%.1f s", used.time.Seconds()), fmt.Sprintf("%.1f s", used.processor.Seconds()), megabytes(used.peak))
	took, err := b.besideFloor("live", b.rounds, wallClock(),
		func() error { return examineLive(b.ctx, c.plane.AdminConfig(), l.nodes) },
		func() error { return listOnly(b.ctx, client, l.nodes) })
	if err != nil {
		return err
	}
	t := table{caption: "**Live, time that has passed,** in the API server too.", header: doctorHeader}
	t.addDoctor(took)
	s.tables = append(s.tables, runs, t)
	s.targets = append(s.targets, atLeast("`doctor` on a live cluster, against only listing", 0.5, took.ratio(), whyDoctor))
	return nil
}

// admit creates the objects. Each request is sent by its kubelet, since the API server
// writes down who did.
func (l doctorCluster) admit(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "aws-auth"}, Data: l.mappings()}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating aws-auth: %w", err)
	}
	maker, err := newRequestMaker()
	if err != nil {
		return err
	}
	return each(ctx, l.nodes, func(ctx context.Context, i int) error {
		if _, err := client.CoreV1().Nodes().Create(ctx, l.node(i), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		request, err := maker.make(i)
		if err != nil {
			return err
		}
		kept := &certificatesv1.CertificateSigningRequest{}
		err = client.CertificatesV1().RESTClient().Post().Resource("certificatesigningrequests").Body(request).
			SetHeader("Impersonate-User", kubelet(i).GetName()).SetHeader("Impersonate-Group", "system:nodes", "system:bootstrappers").
			Do(ctx).Into(kept)
		if err != nil {
			return fmt.Errorf("asking for a certificate of %s: %w", nodeName(i), err)
		}
		kept.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{approval()}
		_, err = client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, kept.Name, kept, metav1.UpdateOptions{})
		return err
	})
}

func examineLive(ctx context.Context, config *rest.Config, nodes int) error {
	c, err := doctor.List(ctx, config, nil)
	if err != nil {
		return err
	}
	return examined(c, nodes)
}

// listOnly asks for the same objects, page by page, and forgets them.
func listOnly(ctx context.Context, client kubernetes.Interface, nodes int) error {
	if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "aws-auth", metav1.GetOptions{}); err != nil {
		return err
	}
	total := 0
	for _, list := range []func(metav1.ListOptions) (int, string, error){
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.CoreV1().Nodes().List(ctx, o)
			return len(list.Items), list.Continue, err
		},
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, o)
			return len(list.Items), list.Continue, err
		},
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.RbacV1().ClusterRoles().List(ctx, o)
			return len(list.Items), list.Continue, err
		},
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.RbacV1().ClusterRoleBindings().List(ctx, o)
			return len(list.Items), list.Continue, err
		},
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.RbacV1().Roles("").List(ctx, o)
			return len(list.Items), list.Continue, err
		},
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.RbacV1().RoleBindings("").List(ctx, o)
			return len(list.Items), list.Continue, err
		},
		func(o metav1.ListOptions) (int, string, error) {
			list, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, o)
			return len(list.Items), list.Continue, err
		},
	} {
		const page = 500
		o := metav1.ListOptions{Limit: page}
		for more := true; more; more = o.Continue != "" {
			n, next, err := list(o)
			if err != nil {
				return err
			}
			total, o.Continue = total+n, next
		}
	}
	if total < 2*nodes {
		return fmt.Errorf("%d objects were listed, of %d nodes with as many requests", total, nodes)
	}
	return ctx.Err()
}
