package noderestriction

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// audienceSearch searches for an audience in the volumes of a pod: in projected
// tokens, and in the token requests of the CSI drivers of its volumes. A volume whose
// driver cannot be found does not stop the search.
type audienceSearch struct {
	volumes  Volumes
	audience string
	// migrate maps in-tree volumes to the CSI drivers that serve them.
	migrate bool

	drivers int // that were asked
	errs    []error
}

func (s *audienceSearch) inPod(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if projects(v.Projected, s.audience) {
			return true
		}
		driver, err := s.driverOf(pod, v)
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("volume %q: %w", v.Name, err))
			continue
		}
		if driver != "" && s.requestedBy(driver) {
			return true
		}
	}
	return false
}

// Audiences lists the audiences of tokens that a node may request for a pod of its
// own because the pod uses them, sorted: the audiences of its projected tokens, and the ones
// that the CSI drivers behind its volumes request. The empty audience is the API server's
// own. Restricted is false if a node may request any audience (feature gate
// ServiceAccountNodeAudienceRestriction, KEP-4412). The authorizer may allow others,
// unless the driver of a volume cannot be found.
func (r *Restriction) Audiences(pod *corev1.Pod) (audiences []string, restricted bool) {
	if !r.features.Enabled(kubeversion.ServiceAccountNodeAudienceRestriction) {
		return nil, false
	}
	s := audienceSearch{volumes: r.state, migrate: r.features.Minor() >= migrationSince}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.ServiceAccountToken != nil {
					audiences = append(audiences, source.ServiceAccountToken.Audience)
				}
			}
		}
		driver, err := s.driverOf(pod, v)
		if err != nil {
			continue
		}
		if d, ok := s.volumes.CSIDriver(driver); ok {
			for _, request := range d.Spec.TokenRequests {
				audiences = append(audiences, request.Audience)
			}
		}
	}
	slices.Sort(audiences)
	return slices.Compact(audiences), true
}

// migrationSince is the minor since which in-tree volumes are mapped to the drivers
// to which they migrate.
const migrationSince kubeversion.Minor = 33

// failed returns a refusal if the driver of a volume could not be found.
func (s *audienceSearch) failed() *refusal {
	if len(s.errs) == 0 {
		return nil
	}
	err := errors.Join(s.errs...)
	return forbid(AudienceLookupFailed, "whether the pod uses tokens for audience %q could not be decided: %v", s.audience, s.errs[0]).
		because(err).lagging(true)
}

func projects(projected *corev1.ProjectedVolumeSource, audience string) bool {
	if projected == nil {
		return false
	}
	for i := range projected.Sources {
		if token := projected.Sources[i].ServiceAccountToken; token != nil && token.Audience == audience {
			return true
		}
	}
	return false
}

func (s *audienceSearch) requestedBy(driver string) bool {
	d, ok := s.volumes.CSIDriver(driver)
	if !ok {
		s.errs = append(s.errs, fmt.Errorf("CSI driver %s does not exist", driver))
		return false
	}
	s.drivers++
	for i := range d.Spec.TokenRequests {
		if d.Spec.TokenRequests[i].Audience == s.audience {
			return true
		}
	}
	return false
}

// driverOf returns the CSI driver that serves a volume, empty if there is none.
func (s *audienceSearch) driverOf(pod *corev1.Pod, v *corev1.Volume) (string, error) {
	switch {
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		return s.driverOfClaim(pod.Namespace, pod.Name+"-"+v.Name)
	case v.PersistentVolumeClaim != nil:
		return s.driverOfClaim(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
	case v.CSI != nil:
		return v.CSI.Driver, nil
	case s.migrate:
		return migratedInline(v, pod.Namespace)
	}
	return "", nil
}

// driverOfClaim uses the claim's volumeName, whether or not the volume's claimRef
// refers to the claim.
func (s *audienceSearch) driverOfClaim(namespace, name string) (string, error) {
	claim, ok := s.volumes.PersistentVolumeClaim(namespace, name)
	if !ok {
		return "", fmt.Errorf("claim %s/%s does not exist", namespace, name)
	}
	if claim.Spec.VolumeName == "" {
		return "", fmt.Errorf("claim %s/%s is not bound to a volume", namespace, name)
	}
	volume, ok := s.volumes.PersistentVolume(claim.Spec.VolumeName)
	switch {
	case !ok:
		return "", fmt.Errorf("persistent volume %s of claim %s/%s does not exist", claim.Spec.VolumeName, namespace, name)
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.Driver, nil
	case s.migrate:
		return migrated(volume)
	}
	return "", nil
}

// migrated returns the driver to which an in-tree volume migrates.
func migrated(volume *corev1.PersistentVolume) (string, error) {
	translator := csitranslation.New()
	if !translator.IsPVMigratable(volume) {
		return "", nil
	}
	return translate("persistent volume "+volume.Name, func() (*corev1.PersistentVolume, error) {
		return translator.TranslateInTreePVToCSI(logr.Discard(), volume)
	})
}

func migratedInline(v *corev1.Volume, namespace string) (string, error) {
	translator := csitranslation.New()
	if !translator.IsInlineMigratable(v) {
		return "", nil
	}
	return translate("inline volume", func() (*corev1.PersistentVolume, error) {
		return translator.TranslateInTreeInlineVolumeToCSI(logr.Discard(), v, namespace)
	})
}

// translate returns the driver of a translated volume. The library panics on
// unexpected volumes, such as inline vSphere volumes with a storage policy.
func translate(what string, translation func() (*corev1.PersistentVolume, error)) (driver string, err error) {
	defer func() {
		if p := recover(); p != nil {
			driver, err = "", fmt.Errorf("%s does not translate to CSI", what)
		}
	}()
	volume, err := translation()
	if err != nil {
		return "", fmt.Errorf("%s does not translate to CSI: %w", what, err)
	}
	if volume == nil || volume.Spec.CSI == nil {
		return "", nil
	}
	return volume.Spec.CSI.Driver, nil
}
