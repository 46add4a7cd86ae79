package vppsim

// The return codes of the binary API. The source is VPP's vnet/error.h and vnet/api_errno.h.
const (
	retvalUnspecified              int32 = -1
	retvalInvalidInterface         int32 = -2
	retvalNoSuchFib                int32 = -3
	retvalNoSuchEntry              int32 = -6
	retvalInvalidValue             int32 = -7
	retvalInvalidRegistration      int32 = -31
	retvalVLANExists               int32 = -56
	retvalAddressNotFound          int32 = -60
	retvalIP6NotEnabled            int32 = -62
	retvalNoSuchTable              int32 = -65
	retvalInvalidArgument          int32 = -73
	retvalBFDExists                int32 = -101
	retvalBFDNoSuchEntry           int32 = -102
	retvalInvalidMemorySize        int32 = -70
	retvalNotEthernet              int32 = -71
	retvalTagCount                 int32 = -72
	retvalTunnelExists             int32 = -75
	retvalDecapNext                int32 = -76
	retvalValueExists              int32 = -81
	retvalInterfaceExists          int32 = -79
	retvalSameEndpoints            int32 = -82
	retvalClassifyTableNotFound    int32 = -91
	retvalInvalidSubInterface      int32 = -98
	retvalAddressFoundForInterface int32 = -114
	retvalBridgeExists             int32 = -119
	retvalBridgeInUse              int32 = -120
	retvalDuplicateAddress         int32 = -127
	retvalInstanceInUse            int32 = -147
	retvalInvalidProtocol          int32 = -153
)
