package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestASitesFurtherSubmitCommandsMayBeUsed(t *testing.T) {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{UID: "u-1", Namespace: "default", Name: "zero"}}
	job.Spec.Script = v1alpha1.Script{Image: "centos", Command: "bash", Source: "echo A"}
	job.Spec.HTCOpts = "batch_project = x\n+ProjectX = 1\n"
	_, err := Site{}.translate(job, 1)
	require.Equal(t, schedd.Refused, schedd.KindOf(err))
	d, err := Site{AllowOptions: []string{"batch_project", "+ProjectX"}}.translate(job, 1)
	require.NoError(t, err)
	text, err := d.Render()
	require.NoError(t, err)
	require.Contains(t, text, "batch_project = x\nMy.ProjectX = 1\n")
}
