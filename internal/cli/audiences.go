package cli

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// addAudiences says for which audiences the node may mint tokens of a service
// account: those that the volumes of its pods on the node ask for, and the API
// server's own (KEP-4412).
func (s *session) addAudiences(o *reachedObject) {
	if !s.features.Enabled(kubeversion.ServiceAccountNodeAudienceRestriction) {
		o.AnyAudience = true
		return
	}
	audiences := []string{""}
	for _, path := range o.Paths {
		if pod, ok := s.state.Pod(path[0].To.Namespace, path[0].To.Name); ok {
			audiences = append(audiences, s.audiencesOf(pod)...)
		}
	}
	slices.Sort(audiences)
	o.Audiences = slices.Compact(audiences)
}

func (s *session) audiencesOf(pod *corev1.Pod) []string {
	var audiences []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Projected != nil:
			for _, p := range v.Projected.Sources {
				if p.ServiceAccountToken != nil {
					audiences = append(audiences, p.ServiceAccountToken.Audience)
				}
			}
		case v.CSI != nil:
			audiences = append(audiences, s.driverAudiences(v.CSI.Driver)...)
		case v.PersistentVolumeClaim != nil:
			audiences = append(audiences, s.claimAudiences(pod.Namespace, v.PersistentVolumeClaim.ClaimName)...)
		case v.Ephemeral != nil:
			audiences = append(audiences, s.claimAudiences(pod.Namespace, pod.Name+"-"+v.Name)...)
		}
	}
	return audiences
}

func (s *session) claimAudiences(namespace, name string) []string {
	claim, ok := s.state.PersistentVolumeClaim(namespace, name)
	if !ok {
		return nil
	}
	volume, ok := s.state.PersistentVolume(claim.Spec.VolumeName)
	if !ok || volume.Spec.CSI == nil {
		return nil
	}
	return s.driverAudiences(volume.Spec.CSI.Driver)
}

func (s *session) driverAudiences(name string) []string {
	driver, ok := s.state.CSIDriver(name)
	if !ok {
		return nil
	}
	var audiences []string
	for _, request := range driver.Spec.TokenRequests {
		audiences = append(audiences, request.Audience)
	}
	return audiences
}
