module longline.dev/agent

go 1.26.0

require (
	github.com/sirupsen/logrus v1.9.3
	go.fd.io/govpp v0.13.0
)

require (
	github.com/fsnotify/fsnotify v1.9.0
	github.com/google/uuid v1.6.0
	github.com/lunixbochs/struc v0.0.0-20200521075829-a4cb8d33dbbe
	github.com/prometheus/client_golang v1.25.0
	go.yaml.in/yaml/v2 v2.4.4
	golang.org/x/net v0.59.0
	golang.org/x/sys v0.48.0
	sigs.k8s.io/yaml v1.6.0
)
