package scheddtest

import (
	"strings"

	"htc.cern.ch/htcd/internal/schedd"
)

func match(j schedd.Job, constraint string) (bool, error) {
	if constraint == j.Tag.Constraint() || constraint == schedd.UIDConstraint(j.Tag.UID) || constraint == schedd.Tagged && j.Tag.UID != "" {
		return true, nil
	}
	return j.Tag.UID != "" && strings.HasPrefix(constraint, schedd.ClusterConstraint(j.Cluster)[:20]), nil
}
