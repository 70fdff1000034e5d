// A chain is ready at once; a result that is no number prints as its type.
// CHECK: --- Running 'ready_chain':
// CHECK-NEXT: 'ready_chain' returned !tfrt.chain value
func.func @ready_chain() -> !tfrt.chain {
  %ch = tfrt.new.chain
  tfrt.return %ch : !tfrt.chain
}
