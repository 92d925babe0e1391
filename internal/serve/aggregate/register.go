package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// again is how often the certificate is put into the APIService: somebody may have replaced it.
const again = time.Minute

// Register publishes this process's certificate to the apiserver until ctx ends. Installing the APIService is left to
// the site: without it there is nothing to do.
func Register(ctx context.Context, client rest.Interface, certificate *Certificate, log zerolog.Logger) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": certificate.PEM}})
	if err != nil {
		panic(err) // a string in maps
	}
	path := "/apis/apiregistration.k8s.io/v1/apiservices/" + GroupVersion.Version + "." + GroupVersion.Group
	was := "untold"
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := client.Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error()
		pause = again
		if now := fmt.Sprint(err); now != was && ctx.Err() == nil {
			was = now
			if err != nil {
				log.Warn().Err(
					err,
				).Str(
					"apiservice",
					path,
				).Msg(
					"users cannot read their output through the apiserver: it does not trust this htcd",
				)
			} else {
				log.Info().Msg("the apiserver can reach users' output")
			}
		}
		if err != nil {
			pause = again / 6
		}
	}
}
