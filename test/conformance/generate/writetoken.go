package generate

import (
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tokenCreate is a request for a token bound to a pod of the node, with an
// audience that one of the pod's volumes may give.
func tokenCreate() kind {
	return kind{
		name: "serviceaccounts/token create", weight: 26, draw: drawToken,
		routes:    tokenRoutes(),
		mutations: boundMutations(),
		finish:    func(d *draft) { d.Object = d.token },
	}
}

// tokenRoutes are where the audience of a token request comes from: the source
// of a volume, of the persistent volume behind a claim, or from no volume.
func tokenRoutes() []aim {
	routes := []aim{{noRoute, Either}, {"audience of a projected token", Allowed}}
	for _, by := range []string{"inline volume", "claim", "ephemeral volume"} {
		for _, source := range []string{
			"csi", "awsElasticBlockStore", "gcePersistentDisk", "cinder", "azureDisk", "azureFile", "vsphereVolume",
			"portworxVolume",
		} {
			routes = append(routes, aim{"audience by " + by + ", " + source, Allowed})
		}
		if by != "inline volume" {
			routes = append(routes, aim{"audience by " + by + ", a source that is no driver's", Either},
				aim{"audience by " + by + ", which leads nowhere", Either})
		}
	}
	return routes
}

func drawToken(d *draft) {
	route, v := d.volumeByRoute()
	account := v.pod.Spec.ServiceAccountName
	if account == "" || chance(d.r, 10) {
		account = pick(d.r, accountNames)
	}
	d.route = ", " + route
	d.about("CREATE", "", "serviceaccounts", "token", v.pod.Namespace, account)
	d.token = &authenticationv1.TokenRequest{}
	d.token.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: v.pod.Name, UID: v.pod.UID}
	audience := pick(d.r, audiences)
	if len(v.gives) > 0 && chance(d.r, 80) {
		audience = pick(d.r, v.gives)
	}
	if audience != "" || chance(d.r, 50) {
		d.token.Spec.Audiences = []string{audience}
	}
}

// noRoute is the route of an audience that no volume gives.
const noRoute = "audience of no volume"

// routed is a pod with the audiences that one of its volumes gives.
type routed struct {
	pod   *corev1.Pod
	gives []string
}

// volumeByRoute draws a route that a pod of the node has, and such a pod.
func (d *draft) volumeByRoute() (route string, v routed) {
	routes := d.index.routes[d.node]
	if len(routes) == 0 || chance(d.r, 15) {
		return noRoute, routed{pod: d.ownPod()}
	}
	route = pick(d.r, slices.Sorted(maps.Keys(routes)))
	return route, pick(d.r, routes[route])
}

// routesOf lists the routes to audiences that the pods of a node have.
func (x *stateIndex) routesOf(node string) map[string][]routed {
	routes := make(map[string][]routed)
	for _, pod := range x.pods[node] {
		for i := range pod.Spec.Volumes {
			route, gives := x.routeOf(pod, &pod.Spec.Volumes[i])
			routes[route] = append(routes[route], routed{pod, gives})
		}
	}
	return routes
}

func (x *stateIndex) routeOf(pod *corev1.Pod, v *corev1.Volume) (route string, gives []string) {
	switch {
	case v.Projected != nil:
		for _, p := range v.Projected.Sources {
			if p.ServiceAccountToken != nil {
				gives = append(gives, p.ServiceAccountToken.Audience)
			}
		}
		if len(gives) > 0 {
			return "audience of a projected token", gives
		}
	case v.PersistentVolumeClaim != nil:
		return x.routeOfClaim("claim", pod.Namespace, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		return x.routeOfClaim("ephemeral volume", pod.Namespace, pod.Name+"-"+v.Name)
	default:
		if source, driver := sourceDriver(corev1.PersistentVolumeSource{}, &v.VolumeSource); source != "" {
			return "audience by inline volume, " + source, x.audiencesOf(driver)
		}
	}
	return noRoute, nil
}

func (x *stateIndex) routeOfClaim(by, namespace, name string) (route string, gives []string) {
	if claim := x.claims[types.NamespacedName{Namespace: namespace, Name: name}]; claim != nil {
		if pv := x.volumes[claim.Spec.VolumeName]; pv != nil {
			source, driver := sourceDriver(pv.Spec.PersistentVolumeSource, &corev1.VolumeSource{})
			if source == "" {
				return "audience by " + by + ", a source that is no driver's", nil
			}
			return "audience by " + by + ", " + source, x.audiencesOf(driver)
		}
	}
	return "audience by " + by + ", which leads nowhere", nil
}

func (x *stateIndex) audiencesOf(driver string) []string {
	var audiences []string
	if known := x.drivers[driver]; known != nil {
		for _, request := range known.Spec.TokenRequests {
			audiences = append(audiences, request.Audience)
		}
	}
	return audiences
}

func sourceDriver(pv corev1.PersistentVolumeSource, inline *corev1.VolumeSource) (source, driver string) {
	switch {
	case inline.CSI != nil:
		return "csi", inline.CSI.Driver
	case pv.CSI != nil:
		return "csi", pv.CSI.Driver
	case inline.AWSElasticBlockStore != nil || pv.AWSElasticBlockStore != nil:
		return "awsElasticBlockStore", "ebs.csi.aws.com"
	case inline.GCEPersistentDisk != nil || pv.GCEPersistentDisk != nil:
		return "gcePersistentDisk", "pd.csi.storage.gke.io"
	case inline.Cinder != nil || pv.Cinder != nil:
		return "cinder", "cinder.csi.openstack.org"
	case inline.AzureDisk != nil || pv.AzureDisk != nil:
		return "azureDisk", "disk.csi.azure.com"
	case inline.AzureFile != nil || pv.AzureFile != nil:
		return "azureFile", "file.csi.azure.com"
	case inline.VsphereVolume != nil || pv.VsphereVolume != nil:
		return "vsphereVolume", "csi.vsphere.vmware.com"
	case inline.PortworxVolume != nil || pv.PortworxVolume != nil:
		return "portworxVolume", "pxd.portworx.com"
	}
	return "", ""
}

// boundMutations are the possible mistakes about the pod that a token is bound to, and
// with its audiences.
func boundMutations() []mutation {
	ref := func(change func(*draft, *authenticationv1.BoundObjectReference)) func(*draft) {
		return func(d *draft) {
			if d.token.Spec.BoundObjectRef != nil {
				change(d, d.token.Spec.BoundObjectRef)
			}
		}
	}
	type bound = authenticationv1.BoundObjectReference
	return []mutation{
		{"bound to nothing", Refused, func(d *draft) { d.token.Spec.BoundObjectRef = nil }},
		{"bound to another kind", Refused, ref(func(d *draft, b *bound) { b.Kind = pick(d.r, []string{"", "pod", "Node", "Secret"}) })},
		{
			"bound by another API version", Refused,
			ref(func(d *draft, b *bound) { b.APIVersion = pick(d.r, []string{"", "v2", "core/v1"}) }),
		},
		{"bound without a name", Refused, ref(func(_ *draft, b *bound) { b.Name = "" })},
		{"bound without a uid", Refused, ref(func(_ *draft, b *bound) { b.UID = "" })},
		{"bound to a pod that is not known", Refused, ref(func(_ *draft, b *bound) { b.Name = "gone" })},
		{"bound to another uid", Refused, ref(func(_ *draft, b *bound) { b.UID += "0" })},
		{"bound to a pod elsewhere", Refused, ref(func(d *draft, b *bound) {
			pod := d.foreignPod()
			d.Namespace, b.Name, b.UID = pod.Namespace, pod.Name, pod.UID
		})},
		{"another service account", Either, func(d *draft) { d.Name = pick(d.r, append([]string{"other"}, accountNames...)) }},
		{"another audience", Either, func(d *draft) {
			d.token.Spec.Audiences = []string{pick(d.r, audiences) + pick(d.r, []string{"", " ", "0"})}
		}},
		{"two audiences", Either, func(d *draft) { d.token.Spec.Audiences = append(d.audiencesOrEmpty(), pick(d.r, audiences)) }},
		{"the same audience twice", Either, func(d *draft) {
			d.token.Spec.Audiences = slices.Repeat(d.audiencesOrEmpty(), 2)
		}},
		{"an empty audience", Either, func(d *draft) { d.token.Spec.Audiences = []string{""} }},
		{"no audience", Either, func(d *draft) { d.token.Spec.Audiences = pick(d.r, [][]string{nil, {}}) }},
		{"an audience in capitals", Either, func(d *draft) { d.token.Spec.Audiences = []string{strings.ToUpper(d.audiencesOrEmpty()[0])} }},
	}
}

func (d *draft) audiencesOrEmpty() []string {
	if len(d.token.Spec.Audiences) == 0 {
		return []string{""}
	}
	return d.token.Spec.Audiences
}
