
'
i0Const*
dtype0*
valueB

opElui0*
T0