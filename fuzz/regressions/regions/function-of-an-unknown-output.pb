

iPlaceholder*
dtype0

xPlaceholder*
dtype0
w
switch_case/indexed_caseStatelessCaseix*
Tout
2*7
branches+
)J'
%switch_case_indexed_case_branch2_7738h
f
7
%switch_case_indexed_case_branch2_7738
neg_x
neg
NegNegneg_x*
T0"
negNeg:Hy:0