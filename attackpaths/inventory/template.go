package inventory

import "encoding/binary"

// appendID appends what tells the template apart from others.
func (t *Template) appendID(id []byte, namespace string) []byte {
	flags := ""
	if t.Mirror {
		flags = "mirror "
	}
	if t.Ephemeral {
		flags += "ephemeral"
	}
	if t.HostPath {
		flags += " host path"
	}
	id = appendText(id, namespace, t.ServiceAccount, flags, t.ControlPlane, t.ControlPlaneDependsOn)
	id = appendText(id, t.Workload.Group, t.Workload.Resource, t.Workload.Name)
	for _, list := range [...][]string{t.Audiences, t.Secrets, t.PullSecrets, t.HostPathsNotFollowed} {
		id = binary.AppendUvarint(id, uint64(len(list)))
		id = appendText(id, list...)
	}
	for _, e := range t.Escapes {
		id = append(appendText(id, e.Means, e.DependsOn), byte(e.Effect))
	}
	for i := range t.mounts {
		id = t.mounts[i].appendID(id)
	}
	id = appendText(id, t.Controller, t.RuntimeClass)
	id = binary.AppendVarint(binary.AppendVarint(id, t.Requests.CPU), t.Requests.Memory)
	for _, f := range t.Fields {
		id = append(id, byte(f.Gives))
		id = appendText(id, f.Secret, f.Path, f.Value)
		for _, c := range f.Checks {
			id = appendText(id, c.Path, c.Value)
		}
	}
	return id
}

// appendText appends texts with their lengths.
func appendText(id []byte, texts ...string) []byte {
	for _, text := range texts {
		id = binary.AppendUvarint(id, uint64(len(text)))
		id = append(id, text...)
	}
	return id
}

func (m *mount) appendID(id []byte) []byte {
	id = appendText(id, m.container, m.user, m.claim, m.subPath)
	for _, flag := range [...]bool{m.readOnly, m.anyFolder, m.before, m.after} {
		if flag {
			id = append(id, 1)
		} else {
			id = append(id, 0)
		}
	}
	return id
}
