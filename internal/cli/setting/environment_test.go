package setting

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestAMisspeltVariableIsFoundAndAServicesAreNot(t *testing.T) {
	var workers int
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	Int(f, &workers, "workers", 4, 1, 1000, "workers")
	environ := []string{"PATH=/bin", "HTCD_WORKRES=1", "HTCD_WORKERS=1", "HTCD_SERVICE_HOST=10.0.0.1", "HTCD_PORT_80_TCP=x", "HTCD_PORT=x"}
	require.ErrorContains(t, Complete(f, environ), "HTCD_WORKRES: no such setting")
}
