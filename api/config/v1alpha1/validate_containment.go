package v1alpha1

import "regexp"

func (v *validation) containment(c *ServerConfiguration) {
	oneOf(v, "containment.nodeScopes", c.Containment.NodeScopes, Disabled, Enabled)
	oneOf(v, "containment.quarantines", c.Containment.Quarantines, Disabled, Enabled)
	if c.Containment.NodeScopes == Enabled && !c.Webhook.Answers(ServeAuthorization) && !c.Webhook.Answers(ServeAdmission) {
		v.wrong("containment.nodeScopes",
			"Enabled has no effect, because webhook.serves has neither Authorization nor Admission: add one of them, or write Disabled")
	}
	form := regexp.MustCompile(`^([1-9][0-9]{0,5}|([1-9][0-9]?|100)%)$`)
	if limit := string(c.Containment.MaxQuarantinedNodes); !form.MatchString(limit) {
		v.wrong("containment.maxQuarantinedNodes", "want %s%s", nodeLimitForm, given(limit))
	}
}

const nodeLimitForm = "a number of nodes from 1 to 999999, or a percentage of all nodes from 1% to 100%, such as 10%"
