module longline.dev/agent

go 1.26.0

require (
	github.com/sirupsen/logrus v1.9.3
	go.fd.io/govpp v0.13.0
)

require (
	github.com/google/uuid v1.6.0
	golang.org/x/sys v0.48.0
)

require (
	github.com/fsnotify/fsnotify v1.9.0 // indirect
	github.com/ftrvxmtrx/fd v0.0.0-20150925145434-c6d800382fff // indirect
	github.com/lunixbochs/struc v0.0.0-20200521075829-a4cb8d33dbbe // indirect
	golang.org/x/net v0.59.0 // indirect
)
