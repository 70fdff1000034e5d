//
func@t()->!.%l="r"():()->!.%u="r"(%ll):(!.)->!.%c=corert.register_op_handler%p""tfrt.return%c:!tfrt.chain//
func@s()->!.{%0=tfrt.new.chain%c=corert.get_op_handler%0""%i=corert.executeop(%u)""(){e=[],v=[1:i2]}:1%j=corert.executeop(%c)""(){s=[],v=[0:i2]}:1%e=corert.executeop(%c)""(%i,%j):1"e"(%e,%0):(!corert.tensorhandle,!tfrt.chain)->!.%f=corert.executeop(%u)""(){s=[]}:10000000