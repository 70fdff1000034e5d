func.func @cond(%x: tensor<i1>) -> tensor<i1> {
  tfrt.return %x : tensor<i1>
}
func.func @body(%x: tensor<i1>) -> tensor<i1> {
  tfrt.return %x : tensor<i1>
}
func.func @main(%x: tensor<i1>) -> tensor<i1> {
  %0 = "heald.while"(%x) {body = @cond, cond = @body, scalar = true} : (tensor<i1>) -> tensor<i1>
  tfrt.return %0 : tensor<i1>
}
