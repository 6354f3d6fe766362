package fakeaws

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"time"
)

// InstanceProfile is an instance profile in IAM.
type InstanceProfile struct {
	// ARN may have a path: "arn:aws:iam::111122223333:instance-profile/kubernetes/nodes".
	ARN string
	// ID is the profile's id. The default is that in EC2's answers. A profile that was
	// created again under the same name has another.
	ID string
	// Roles are the ARNs of its roles, at most one, with their paths.
	Roles []string
}

// profileID is the default id of instance profiles.
const profileID = "AIPA0A1B2C3D4E5F60718"

// SetInstanceProfile sets a profile in IAM. By default, each instance has a profile with
// its role.
func (c *Cloud) SetInstanceProfile(profile InstanceProfile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	setDefault(&profile.ID, profileID)
	profile.Roles = slices.Clone(profile.Roles)
	c.profiles[profile.ARN] = &profile
}

// DeleteInstanceProfile deletes a profile from IAM, even if instances have it.
func (c *Cloud) DeleteInstanceProfile(arn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profiles[arn] = nil
}

type (
	// The answer of GetInstanceProfile (IAM API, version 2010-05-08).
	getInstanceProfileResponse struct {
		XMLName xml.Name          `xml:"https://iam.amazonaws.com/doc/2010-05-08/ GetInstanceProfileResponse"`
		Profile iamProfileElement `xml:"GetInstanceProfileResult>InstanceProfile"`
		Request string            `xml:"ResponseMetadata>RequestId"`
	}
	iamProfileElement struct {
		ARN     string           `xml:"Arn"`
		ID      string           `xml:"InstanceProfileId"`
		Name    string           `xml:"InstanceProfileName"`
		Path    string           `xml:"Path"`
		Created string           `xml:"CreateDate"`
		Roles   []iamRoleElement `xml:"Roles>member"`
	}
	iamRoleElement struct {
		ARN     string `xml:"Arn"`
		ID      string `xml:"RoleId"`
		Name    string `xml:"RoleName"`
		Path    string `xml:"Path"`
		Created string `xml:"CreateDate"`
	}
	iamError struct {
		XMLName xml.Name `xml:"https://iam.amazonaws.com/doc/2010-05-08/ ErrorResponse"`
		Type    string   `xml:"Error>Type"`
		Code    string   `xml:"Error>Code"`
		Message string   `xml:"Error>Message"`
		Request string   `xml:"RequestId"`
	}
)

// handleIAM answers GetInstanceProfile for the profiles of the caller's account.
func (c *Cloud) handleIAM(w http.ResponseWriter, r *http.Request) {
	who, region, refused := c.authenticate(r, "iam")
	if refused == nil && r.Host == "iam.amazonaws.com" && region != "us-east-1" {
		refused = &refusal{403, "SignatureDoesNotMatch", "Credential should be scoped to a valid region."}
	}
	if refused != nil {
		writeIAMError(w, *refused)
		return
	}
	if err := r.ParseForm(); err != nil || r.URL.Path != "/" ||
		r.Form.Get("Action") != "GetInstanceProfile" || r.Form.Get("Version") != "2010-05-08" {
		writeIAMError(w,
			refusal{400, "InvalidAction", "Could not find operation " + r.Form.Get("Action") + " for version " + r.Form.Get("Version")})
		return
	}
	name := r.Form.Get("InstanceProfileName")
	profile, ok := c.instanceProfile(who.account, name)
	if !ok {
		writeIAMError(w, refusal{404, "NoSuchEntity", "Instance Profile " + name + " cannot be found."})
		return
	}
	writeXML(w, http.StatusOK, getInstanceProfileResponse{Profile: profileOf(profile), Request: requestID()})
}

// instanceProfile finds a profile by its name, which is unique in its account regardless
// of the path.
func (c *Cloud) instanceProfile(account, name string) (InstanceProfile, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := func(arn string) bool {
		_, last := splitResource(arn)
		return last == name && accountOf(arn) == account
	}
	for arn, profile := range c.profiles {
		if named(arn) {
			if profile == nil {
				return InstanceProfile{}, false
			}
			return *profile, true
		}
	}
	for _, i := range c.instances {
		if i.Account == account && named(i.Profile) {
			profile := InstanceProfile{ARN: i.Profile, ID: profileID}
			if i.Role != "" {
				profile.Roles = []string{"arn:" + partition(i.Region) + ":iam::" + account + ":role/" + i.Role}
			}
			return profile, true
		}
	}
	return InstanceProfile{}, false
}

// splitResource returns the path and the name in an ARN of IAM: "/kubernetes/" and
// "nodes".
func splitResource(arn string) (path, name string) {
	_, resource, _ := strings.Cut(arn, "/")
	at := strings.LastIndexByte(resource, '/') + 1
	return "/" + resource[:at], resource[at:]
}

func accountOf(arn string) string {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 {
		return parts[4]
	}
	return ""
}

func profileOf(profile InstanceProfile) iamProfileElement {
	created := time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC).Format(time.RFC3339)
	path, name := splitResource(profile.ARN)
	element := iamProfileElement{ARN: profile.ARN, ID: profile.ID, Name: name, Path: path, Created: created}
	for _, role := range profile.Roles {
		path, name := splitResource(role)
		element.Roles = append(element.Roles, iamRoleElement{
			ARN: role, ID: "AROA0A1B2C3D4E5F60718", Name: name, Path: path, Created: created,
		})
	}
	return element
}

func writeIAMError(w http.ResponseWriter, refused refusal) {
	kind := "Sender"
	if refused.status >= 500 {
		kind = "Receiver"
	}
	writeXML(w, refused.status, iamError{Type: kind, Code: refused.code, Message: refused.message, Request: requestID()})
}

func throttledIAM(w http.ResponseWriter, _ *http.Request, kind FaultKind) {
	writeIAMError(w, map[FaultKind]refusal{
		Throttled: {400, "Throttling", "Rate exceeded"},
		Broken:    {500, "ServiceFailure", "The request processing has failed because of an unknown error, exception or failure."},
		Forbidden: {403, "AccessDenied", "User is not authorized to perform: iam:GetInstanceProfile"},
	}[kind])
}
