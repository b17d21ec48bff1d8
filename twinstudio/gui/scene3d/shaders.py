"""The shading programs, GLSL 3.30. Lengths in m, colours linear enough for a screen."""

MESH_VERTEX = """
#version 330 core
layout(location = 0) in vec4 corner;   // xyz in the link frame, w: row of the table
layout(location = 1) in vec3 normal;
uniform samplerBuffer rows;
uniform int offset;
uniform mat4 camera;                   // world to clip
uniform vec3 eye;
out vec3 facing;
out vec3 sight;
flat out vec4 paint;
void main() {
    int row = (offset + int(corner.w + 0.5)) * 4;
    vec4 x = texelFetch(rows, row);
    vec4 y = texelFetch(rows, row + 1);
    vec4 z = texelFetch(rows, row + 2);
    vec4 point = vec4(corner.xyz, 1.0);
    vec3 world = vec3(dot(x, point), dot(y, point), dot(z, point));
    facing = vec3(dot(x.xyz, normal), dot(y.xyz, normal), dot(z.xyz, normal));
    sight = eye - world;
    paint = texelFetch(rows, row + 3);
    gl_Position = camera * vec4(world, 1.0);
}
"""

MESH_FRAGMENT = """
#version 330 core
in vec3 facing;
in vec3 sight;
flat in vec4 paint;
uniform vec3 key;                      // unit vectors towards the lights
uniform vec3 fill;
out vec4 color;
void main() {
    vec3 n = normalize(facing);
    vec3 v = normalize(sight);
    n = dot(n, v) < 0.0 ? -n : n;      // models with inside-out faces are lit all the same
    float sky = 0.5 + 0.5 * n.z;
    float diffuse = 0.32 + 0.22 * sky
                  + 0.52 * max(dot(n, key), 0.0) + 0.20 * max(dot(n, fill), 0.0);
    float gloss = max(dot(n, normalize(key + v)), 0.0);
    gloss *= gloss; gloss *= gloss; gloss *= gloss; gloss *= gloss; gloss *= gloss;
    float rim = 1.0 - dot(n, v);
    rim = rim * rim * rim;
    vec3 lit = paint.rgb * diffuse + vec3(0.16 * gloss + 0.16 * rim * sky);
    color = vec4(mix(paint.rgb * (0.8 + 0.2 * sky), lit, paint.a), 1.0);
}
"""

SCREEN_VERTEX = """
#version 330 core
uniform mat4 unproject;                // clip to world, translation of the eye left out
out vec3 ray;
void main() {
    vec2 at = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
    vec4 far = unproject * vec4(at, 1.0, 1.0);
    ray = far.xyz / far.w;
    gl_Position = vec4(at, 1.0, 1.0);
}
"""

BACKGROUND_FRAGMENT = """
#version 330 core
in vec3 ray;
uniform vec3 eye;
uniform vec3 zenith;
uniform vec3 horizon;
uniform vec3 ground;
uniform vec3 grid;
uniform vec2 spacing;                  // of fine and coarse lines, m
uniform float reach;                   // where the grid has faded, m
uniform vec2 centre;
out vec4 color;
float lines(vec2 at, vec2 width, float step) {
    vec2 away = abs(fract(at / step + 0.5) - 0.5) * step;
    vec2 cover = clamp(1.0 - away / width, 0.0, 1.0) * min(vec2(1.0), 0.25 * step / width);
    return max(cover.x, cover.y);
}
void main() {
    float rise = ray.z * inversesqrt(dot(ray, ray));
    vec3 paint = rise > 0.0 ? mix(horizon, zenith, sqrt(min(rise * 1.3, 1.0)))
                            : mix(horizon, ground, min(sqrt(-rise * 3.0), 1.0));
    float t = -eye.z / ray.z;
    vec2 at = eye.xy + t * ray.xy;
    vec2 width = fwidth(at) * 1.1;
    float away = length(at - centre) / reach;
    if (t > 0.0 && away < 1.0) {
        float fade = (1.0 - away) * (1.0 - away) * min(1.0, 8.0 * abs(rise));
        float fine = 0.30 * max(0.0, 1.0 - 2.5 * away);
        float ink = max(fine * lines(at, width, spacing.x), 0.7 * lines(at, width, spacing.y));
        paint = mix(paint, grid, ink * fade);
    }
    color = vec4(paint, 1.0);
}
"""

GHOST_FRAGMENT = """
#version 330 core
in vec3 ray;
uniform sampler2D ghost;               // lit colour, alpha: covered
uniform sampler2D ghost_depth;
uniform sampler2D solid_depth;
uniform vec3 outline;
uniform vec2 planes;                   // near and far, m
out vec4 color;
float metres(float depth) {
    return planes.x * planes.y / (planes.y - depth * (planes.y - planes.x));
}
float covered(ivec2 at) {
    return texelFetch(ghost, clamp(at, ivec2(0), textureSize(ghost, 0) - 1), 0).a;
}
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    vec4 here = texelFetch(ghost, at, 0);
    float most = max(max(covered(at + ivec2(1, 0)), covered(at - ivec2(1, 0))),
                     max(covered(at + ivec2(0, 1)), covered(at - ivec2(0, 1))));
    float least = min(min(covered(at + ivec2(1, 0)), covered(at - ivec2(1, 0))),
                      min(covered(at + ivec2(0, 1)), covered(at - ivec2(0, 1))));
    if (max(most, here.a) == 0.0) discard;
    float edge = max(most, here.a) - min(least, here.a);
    // Where both coincide the ghost nearly vanishes, so that error colours stay legible.
    float front = metres(texelFetch(solid_depth, at, 0).r)
                - metres(texelFetch(ghost_depth, at, 0).r);
    float alpha = front > 0.0 ? mix(0.10, 0.52, smoothstep(0.0, 0.025, front))
                              : mix(0.10, 0.20, smoothstep(0.0, 0.025, -front));
    alpha *= here.a;
    vec3 body = here.a > 0.0 ? here.rgb / here.a : outline;
    color = vec4(mix(body, outline, edge), max(alpha, 0.9 * edge));
}
"""
